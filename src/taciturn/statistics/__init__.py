"""Scores and descriptions of private rows: counted once, with noise, charged and certified."""
