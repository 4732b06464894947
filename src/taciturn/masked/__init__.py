"""Sums of all sites of which nobody sees a part, and the descent that is built on them."""
