"""Compiled solvers (kernels) for small sites, where Python's overhead would take longer than the arithmetic.

sites.py           the rule that decides which sites are small, and the class `Pack`, which calls the kernels
kernel.py          dense rows: damped Newton with a Cholesky factorisation, one repeat at a time
sparse_kernel.py   sparse rows: damped Newton with conjugate gradients, four repeats at a time
lanes.py           products of sparse rows with four models at a time
slopes.py          values and derivatives of the losses that the kernels support

Only the kernels and the modules that they use import numba. The first solve of a small site loads the
kernels.
"""
