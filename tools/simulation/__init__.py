"""Whole networks of sites in one process, under faults drawn from a seed: `python -m tools.simulation`."""
