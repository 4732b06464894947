"""Additive models: one curve per column that people can look at."""
