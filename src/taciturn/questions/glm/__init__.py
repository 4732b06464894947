"""Regressions as questions: formulas, the public facts, and the table that a paper prints."""
