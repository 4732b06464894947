"""Functions that numba compiles: fixed arithmetic, and the random numbers of simulations."""
