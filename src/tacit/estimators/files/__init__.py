"""What a fit reads and writes: job files, tables, models."""
