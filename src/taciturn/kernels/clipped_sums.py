"""Sums of clipped slopes over rows, compiled: one pass over the rows, and as exact as their products.

psi = weight sigma(-z) min(1, a / sigma(|z|)), z = Z f. Some rows are added up plainly, and such sums with
what each addition loses: the error does not grow with the number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from .arithmetic import compiled, exp, exp_parts, power_of_two

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
def _margins(Z: Array, f: Array, z: Array) -> None:
    """z = Z f, in four sums for each row."""
    d = len(f)
    fours = d - d % 4
    for n in range(len(Z)):
        a, b, c, e = 0.0, 0.0, 0.0, 0.0
        for j in range(0, fours, 4):
            a += Z[n, j] * f[j]
            b += Z[n, j + 1] * f[j + 1]
            c += Z[n, j + 2] * f[j + 2]
            e += Z[n, j + 3] * f[j + 3]
        for j in range(fours, d):
            a += Z[n, j] * f[j]
        z[n] = (a + b) + (c + e)


@compiled
def _slopes(z: Array, limits: Array, weights: Array, powers: Array, series: Array) -> None:
    """z = weight * clipped_slope(z, limit): the same bits, in loops that processors run several steps of."""
    for n in range(len(limits)):
        powers[n], series[n] = exp_parts(-min(abs(z[n]), 700.0))
    for n in range(len(limits)):
        powers[n] = power_of_two(powers[n])
    for n in range(len(limits)):
        tail = series[n] * powers[n]
        slope = min(1.0 / (1.0 + tail), limits[n])
        z[n] = weights[n] * (slope * tail if z[n] > 0.0 else slope)


@compiled
def dense_sum(Z: Array, f: Array, limits: Array, weights: Array) -> Array:
    """sum psi z over dense rows, a group at a time."""
    rows, d = Z.shape
    total, lost, part = np.zeros(d), np.zeros(d), np.zeros(d)
    psi, powers, series = np.zeros(GROUP), np.zeros(GROUP), np.zeros(GROUP)
    for first in range(0, rows, GROUP):
        last = min(first + GROUP, rows)
        _margins(Z[first:last], f, psi)
        _slopes(psi, limits[first:last], weights[first:last], powers, series)
        for n in range(first, last):
            for j in range(d):
                part[j] += psi[n - first] * Z[n, j]
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
