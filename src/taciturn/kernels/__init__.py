"""Functions compiled by numba: arithmetic with reproducible bits, and random numbers for simulations."""
