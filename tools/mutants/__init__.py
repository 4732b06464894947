"""Mutation tests: plant small faults, one at a time, in the code behind the guarantees, and run the tests."""
