"""The rounds of a masked job: keys for the run, what is kept of them, messages, sums."""
