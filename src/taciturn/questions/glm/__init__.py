"""Regressions that sites fit together: formulas, the public facts of a regression, its table of results."""
