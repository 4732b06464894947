"""Imported by the process that forks sites: each of them is then born with its machine code."""

from support.kernels import compile_kernels

compile_kernels()
