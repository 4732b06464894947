"""What sites compute and release: the paper's methods, masked sums, and the one loop that drives them."""
