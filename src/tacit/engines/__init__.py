"""Who drives the nodes."""
