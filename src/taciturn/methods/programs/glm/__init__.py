"""Regressions with standard errors that hold: the public program, and what its totals say."""
