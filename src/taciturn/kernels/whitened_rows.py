"""Rows in other coordinates, compiled: W'x, shrunk to norm 1 where it is longer; each from that row alone.

A product of matrices could make the last bits of a row depend on the rows beside it, and those on how many
rows a person has.
"""

from __future__ import annotations

import math

from ..core.types import Array
from .arithmetic import compiled
from .clipped_sums import Indices

_SPARE = 1.0 - 1e-13  # so that a shrunken row is within norm 1 in floats too


@compiled
def _shrink(row: Array) -> None:
    """row min(1, 1 / ||row||)."""
    square = 0.0
    for k in range(len(row)):
        square += row[k] * row[k]
    if square > _SPARE:
        factor = _SPARE / math.sqrt(square)
        for k in range(len(row)):
            row[k] *= factor


@compiled
def dense_rows(Z: Array, W: Array, made: Array) -> None:
    """Add Z W of dense rows to zeros, no row longer than 1."""
    rows, d = Z.shape
    for n in range(rows):
        row = made[n]
        for j in range(d):
            x = Z[n, j]
            if x != 0.0:
                for k in range(W.shape[1]):
                    row[k] += x * W[j, k]
        _shrink(row)


@compiled
def sparse_rows(data: Array, indices: Indices, indptr: Indices, W: Array, made: Array) -> None:
    """The same of the rows of a CSR matrix."""
    for n in range(len(indptr) - 1):
        row = made[n]
        for i in range(indptr[n], indptr[n + 1]):
            for k in range(W.shape[1]):
                row[k] += data[i] * W[indices[i], k]
        _shrink(row)
