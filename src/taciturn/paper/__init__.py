"""Reproduce the paper: its figures, its claims, parameter sweeps, and the demonstration."""
