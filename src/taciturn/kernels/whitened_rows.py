"""Compiled change to whitened coordinates: each row x becomes W'x, scaled to norm 1 if it is longer.

The public matrix W makes the columns of the rows roughly uncorrelated, with equal variances. Each row is
computed separately. With a matrix product by BLAS, the last bits of a row could depend on the other rows, and
therefore on how many rows a person has.
"""

from __future__ import annotations

import math

from ..core.types import Array
from .arithmetic import compiled
from .clipped_sums import Indices

_SPARE = 1.0 - 1e-13  # below 1, so that rounding cannot make the norm of a scaled row exceed 1


@compiled
def _shrink(row: Array) -> None:
    """Scale the row, in place, to norm 1 if its norm is larger."""
    square = 0.0
    for k in range(len(row)):
        square += row[k] * row[k]
    if square > _SPARE:
        factor = _SPARE / math.sqrt(square)
        for k in range(len(row)):
            row[k] *= factor


@compiled
def dense_rows(Z: Array, W: Array, made: Array) -> None:
    """Write the rows of Z W, each scaled to norm at most 1, into `made`, which must contain zeros."""
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
    """The same as `dense_rows`, for the CSR matrix Z with these arrays data, indices and indptr."""
    for n in range(len(indptr) - 1):
        row = made[n]
        for i in range(indptr[n], indptr[n + 1]):
            for k in range(W.shape[1]):
                row[k] += data[i] * W[indices[i], k]
        _shrink(row)
