"""The methods that sites run: the paper's methods, masked sums, and the loop that drives all of them."""
