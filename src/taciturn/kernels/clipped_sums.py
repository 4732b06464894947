"""Sums of clipped slopes over rows, compiled: one pass over the rows, and as exact as their products.

psi = weight sigma(-z) min(1, a / sigma(|z|)), z = Z f. Some rows are added up plainly, and such sums with
what each addition loses: the error does not grow with the number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from .arithmetic import compiled, exp

Indices = NDArray[Any]

GROUP = 64
"""Rows that are added up plainly."""


@compiled
def clipped_slope(z: float, a: float) -> float:
    """sigma(-z) min(1, a / sigma(|z|)) <= a."""
    tail = exp(-min(abs(z), 700.0))
    slope = min(1.0 / (1.0 + tail), a)
    return slope * tail if z > 0.0 else slope


@compiled
def _add(total: Array, lost: Array, part: Array) -> None:
    """total += part, and lost += what rounding took; part is 0 again."""
    for j in range(len(part)):
        s = total[j] + part[j]
        b = s - total[j]
        lost[j] += (total[j] - (s - b)) + (part[j] - b)
        total[j], part[j] = s, 0.0


@compiled
def dense_sum(Z: Array, f: Array, limits: Array, weights: Array) -> Array:
    """sum psi z over dense rows."""
    rows, d = Z.shape
    total, lost, part = np.zeros(d), np.zeros(d), np.zeros(d)
    fours = d - d % 4
    for n in range(rows):
        a, b, c, e = 0.0, 0.0, 0.0, 0.0
        for j in range(0, fours, 4):
            a += Z[n, j] * f[j]
            b += Z[n, j + 1] * f[j + 1]
            c += Z[n, j + 2] * f[j + 2]
            e += Z[n, j + 3] * f[j + 3]
        for j in range(fours, d):
            a += Z[n, j] * f[j]
        psi = weights[n] * clipped_slope((a + b) + (c + e), limits[n])
        for j in range(d):
            part[j] += psi * Z[n, j]
        if n % GROUP == GROUP - 1:
            _add(total, lost, part)
    _add(total, lost, part)
    return total + lost


@compiled
def sparse_sum(
    data: Array, indices: Indices, indptr: Indices, f: Array, limits: Array, weights: Array
) -> Array:
    """The same over the rows of a CSR matrix."""
    d = len(f)
    total, lost, part = np.zeros(d), np.zeros(d), np.zeros(d)
    for n in range(len(indptr) - 1):
        z = 0.0
        for k in range(indptr[n], indptr[n + 1]):
            z += data[k] * f[indices[k]]
        psi = weights[n] * clipped_slope(z, limits[n])
        for k in range(indptr[n], indptr[n + 1]):
            part[indices[k]] += psi * data[k]
        if n % GROUP == GROUP - 1:
            _add(total, lost, part)
    _add(total, lost, part)
    return total + lost
