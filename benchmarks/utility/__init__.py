"""How good a private model is, against what a user would pick instead, at equal (epsilon, delta)."""
