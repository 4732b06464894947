"""Measure the parts of a round in a real network."""
