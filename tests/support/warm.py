"""Imports for the process that forks sites, so that each site starts with compiled code and modules."""

import _strptime  # noqa: F401
import encodings.cp437
import encodings.utf_8_sig  # noqa: F401
import gc

import taciturn.data  # noqa: F401
from support.kernels import compile_kernels

compile_kernels()
gc.collect()
gc.freeze()  # no site looks through what it was born with, or copies its pages by doing so
