"""What everybody computes alike from what everybody has seen; nothing here is private, nothing is sent."""
