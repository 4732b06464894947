"""One job format for `taciturn train` and `taciturn site`: models, reader, and the rows it is about."""
