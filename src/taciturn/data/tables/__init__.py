"""Tables with public bounds: schemas, columns, encoders, files, and how rows are distributed over sites."""
