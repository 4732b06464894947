"""Measured lower bounds on epsilon, and the paper's attack."""
