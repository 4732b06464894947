"""The lowest layer: errors, checks, formats and files that every other package may use."""
