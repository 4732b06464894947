"""The exact minimiser of one site's objective, certified to a distance."""
