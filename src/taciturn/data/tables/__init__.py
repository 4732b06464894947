"""Tables with public bounds: schemas, columns, encoders, files, and dealing rows to sites."""
