"""A whole network on this machine, to try things out."""
