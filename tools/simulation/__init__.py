"""Simulate networks of sites in one process, with random faults from a seed: `python -m tools.simulation`."""
