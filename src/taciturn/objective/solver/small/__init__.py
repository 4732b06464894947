"""Compiled solvers for small sites, at which Python's overhead would take longer than the arithmetic.

sites.py           which sites are small, their rows in a few arrays, and the calls of the kernels
kernel.py          dense rows: damped Newton with a Cholesky factorisation, one repeat at a time
sparse_kernel.py   sparse rows: damped Newton with conjugate gradients, four repeats at a time
lanes.py           sparse rows times four models
slopes.py          the losses that taciturn provides

Only the kernels and the modules that they use import numba. The first solve of a small site loads the
kernels.
"""
