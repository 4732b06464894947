"""The methods that sites run: the paper's methods, masked sums, and the one loop that drives them."""
