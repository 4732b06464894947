"""Regressions as questions: formulas, the public facts of a regression, and its table of results."""
