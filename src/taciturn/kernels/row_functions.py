"""Compiled functions that treat each row separately: the result for a row does not depend on other rows.

Most functions accept rows (n, k) and return one row for each of them. The order of summation is fixed. With
BLAS, the order would depend on the number of rows, and so would the last bits of a result. These functions do
not reject NaN or infinity: the caller has to check the rows.

`dense_rows` and `sparse_rows` change rows to whitened coordinates: each row x becomes W'x. If the norm of W'x
is above 1, W'x is scaled to norm 1. The public matrix W makes the columns roughly uncorrelated, with equal
variances.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.types import Array
from .arithmetic import compiled, dot, exp
from .clipped_sums import Indices

_LIMIT = 700.0  # arguments of exp are clipped to [-_LIMIT, _LIMIT]
_SPARE = 1.0 - 1e-13  # `_shrink` scales to this and not to 1, because rounding may increase the norm


@compiled
def affine(X: Array, A: Array, b: Array) -> Array:
    """A x + b for every row x of X; each entry is summed from the first column to the last."""
    out = np.empty((X.shape[0], A.shape[0]))
    for i in range(X.shape[0]):
        for k in range(A.shape[0]):
            total = b[k]
            for j in range(X.shape[1]):
                total += A[k, j] * X[i, j]
            out[i, k] = total
    return out


@compiled
def sigmoid(X: Array) -> Array:
    """1 / (1 + exp(-x)) for every entry x; NaN if x is NaN."""
    out = np.empty_like(X)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = min(max(X[i, j], -_LIMIT), _LIMIT)
            out[i, j] = 1.0 / (1.0 + exp(-x)) if X[i, j] == X[i, j] else math.nan
    return out


@compiled
def exponential(X: Array) -> Array:
    """exp(x) for every entry x, where x is first clipped to [-700, 700]; NaN if x is NaN."""
    out = np.empty_like(X)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = min(max(X[i, j], -_LIMIT), _LIMIT)
            out[i, j] = exp(x) if X[i, j] == X[i, j] else math.nan
    return out


@compiled
def cosine(X: Array) -> Array:
    """cos(x) for every entry x; NaN if |x| >= 1e9 or x is NaN."""
    out = np.empty_like(X)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[i, j] = math.cos(X[i, j]) if abs(X[i, j]) < 1e9 else math.nan
    return out


@compiled
def norms(X: Array) -> Array:
    """||x|| for every row x, (n, 1); infinite if the square of an entry overflows."""
    out = np.empty((X.shape[0], 1))
    for i in range(X.shape[0]):
        out[i, 0] = math.sqrt(dot(X[i], X[i]))
    return out


@compiled
def clipped(X: Array, bound: float) -> Array:
    """x min(1, bound / ||x||) for every row x; zeros if an entry of x is not finite.

    The relative error is at most (k + 4) 2^-53 for rows with k entries.
    """
    out = np.zeros_like(X)
    for i in range(X.shape[0]):
        largest, sound = 0.0, True
        for j in range(X.shape[1]):
            sound = sound and math.isfinite(X[i, j])
            largest = max(largest, abs(X[i, j]))
        if not sound or largest == 0.0:
            continue
        total = 0.0
        for j in range(X.shape[1]):
            total += (X[i, j] / largest) * (X[i, j] / largest)
        size = largest * math.sqrt(total)
        scale = 1.0 if size <= bound else bound / size
        for j in range(X.shape[1]):
            out[i, j] = (
                X[i, j] * scale if math.isfinite(size) else (X[i, j] / largest) * bound / math.sqrt(total)
            )
    return out


@compiled
def first_largest(X: Array) -> Array:
    """For each row, 1 in the column of its largest entry, 0 elsewhere. Of equal entries, the first counts."""
    out = np.zeros_like(X)
    for i in range(X.shape[0]):
        best = 0
        for j in range(1, X.shape[1]):
            if X[i, j] > X[i, best]:
                best = j
        out[i, best] = 1.0
    return out


@compiled
def in_cells(X: Array, edges: Array) -> Array:
    """A row has one entry, x. For each row: 1 in column k if edges[k] <= x < edges[k + 1], else 0.

    The last cell also contains its right edge.
    """
    cells = len(edges) - 1
    out = np.zeros((X.shape[0], cells))
    for i in range(X.shape[0]):
        x = X[i, 0]
        for k in range(cells):
            if edges[k] <= x and (x < edges[k + 1] or (k == cells - 1 and x == edges[k + 1])):
                out[i, k] = 1.0
    return out


@compiled
def hats(X: Array, knots: Array) -> Array:
    """The hat functions (linear B-splines) at the only entry x of each row; zeros if x is NaN.

    x is first clipped to the range of the knots.
    """
    count = len(knots)
    out = np.zeros((X.shape[0], count))
    for i in range(X.shape[0]):
        x = min(max(X[i, 0], knots[0]), knots[count - 1])
        if X[i, 0] != X[i, 0]:
            continue
        for k in range(count - 1):
            if knots[k] <= x <= knots[k + 1]:
                right = (x - knots[k]) / (knots[k + 1] - knots[k])
                out[i, k], out[i, k + 1] = 1.0 - right, right
                break
    return out


@compiled
def outer_triangle(X: Array) -> Array:
    """For each row x, the upper triangle of x x' as one row.

    Entries off the diagonal are multiplied by sqrt 2, so that the new row has the norm ||x||^2.
    """
    d = X.shape[1]
    out = np.empty((X.shape[0], d * (d + 1) // 2))
    root = math.sqrt(2.0)
    for i in range(X.shape[0]):
        place = 0
        for j in range(d):
            for k in range(j, d):
                out[i, place] = X[i, j] * X[i, k] * (1.0 if j == k else root)
                place += 1
    return out


@compiled
def _shrink(row: Array) -> None:
    """Scale the row, in place, to norm 1 if its norm is above 1."""
    square = dot(row, row)
    if square > _SPARE:
        factor = _SPARE / math.sqrt(square)
        for k in range(len(row)):
            row[k] *= factor


@compiled
def dense_rows(Z: Array, W: Array, made: Array) -> None:
    """Write the rows of Z W, each scaled to norm at most 1, into `made`, which must be all zeros before."""
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
    """The same as `dense_rows`, for a sparse matrix Z in CSR form, given by its three arrays."""
    for n in range(len(indptr) - 1):
        row = made[n]
        for i in range(indptr[n], indptr[n + 1]):
            for k in range(W.shape[1]):
                row[k] += data[i] * W[indices[i], k]
        _shrink(row)
