"""What a fit reads and writes: job files and models."""
