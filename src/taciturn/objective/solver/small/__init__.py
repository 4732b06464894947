"""Small sites, where Python would take longer than the arithmetic: Newton's method in machine code.

sites.py      which sites are small; the rows of many of them in one array; what is asked of the kernel
kernel.py     damped Newton with Cholesky's factor, one repeat after the other
slopes.py     the shipped losses
cholesky.py   symmetric matrices of a few rows

numba is imported by `kernel.py` and what it needs, and that by the first solve of a small site.
"""
