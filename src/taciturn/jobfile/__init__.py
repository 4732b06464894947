"""The job format of `taciturn train` and `taciturn site`: its models, its reader, and the reader of rows."""
