"""A round of a real network, and what it is made of."""
