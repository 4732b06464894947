"""Compare the quality of private models with the alternatives at equal (epsilon, delta)."""
