"""The tasks and the comparison of `taciturn demo`."""
