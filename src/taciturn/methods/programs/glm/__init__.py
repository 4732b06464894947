"""Regressions with valid standard errors: the public program, and the estimates from its totals."""
