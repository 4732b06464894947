"""The cost of a release."""
