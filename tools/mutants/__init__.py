"""Mutants: small faults planted one by one in what promises rest on, to see whether a test fails."""
