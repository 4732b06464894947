"""Small sites, where Python would take longer than the arithmetic: Newton's method in machine code.

sites.py           which sites are small
packs.py           the rows of many of them in a few arrays; what is asked of a kernel
kernel.py          dense rows: damped Newton with Cholesky's factor, one repeat after the other
sparse_kernel.py   sparse rows: damped Newton with conjugate gradients, four repeats abreast
lanes.py           sparse rows times four models
slopes.py          the shipped losses

numba is imported by the kernels and what they need, and those by the first solve of a small site.
"""
