"""Solvers that minimise one site's objective, with a proven bound on the distance to the exact minimiser."""
