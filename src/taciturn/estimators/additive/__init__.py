"""Additive models: the score is a sum of one curve for each column."""
