"""A run that ends before its last round: what is said then, and by whom it is agreed."""
