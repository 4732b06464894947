"""Two processes with the name and key of one site: how a neighbour sees them, and what proves it."""
