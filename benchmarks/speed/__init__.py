"""Compare the speed of our rounds with plain loops and bare matrix products."""
