"""Compiled sums of psi Z over the rows Z, where psi is minus the clipped slope of the logistic loss.

For a row Z and a model f, z = Z f and psi = weight sigma(-z) min(1, a / sigma(|z|)). Here sigma is the
logistic function, and a is the row's entry of `limits`, so |psi| <= weight a. Each group of GROUP rows is
summed in ordinary floats. The sums of the groups are added by compensated summation, which collects the
rounding errors in `lost`. So the relative error of the result hardly grows with the number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from .arithmetic import compiled, exp, exp_parts, power_of_two

Indices = NDArray[Any]

GROUP = 64
"""The number of rows in a group."""


@compiled
def clipped_slope(z: float, a: float) -> float:
    """Minus the slope of the logistic loss, clipped: sigma(-z) min(1, a / sigma(|z|)) <= a."""
    tail = exp(-min(abs(z), 700.0))
    slope = min(1.0 / (1.0 + tail), a)
    return slope * tail if z > 0.0 else slope


@compiled
def _add(total: Array, lost: Array, part: Array) -> None:
    """Add `part` to `total` and the rounding error of this addition to `lost`; then set `part` to 0."""
    for j in range(len(part)):
        s = total[j] + part[j]
        b = s - total[j]
        lost[j] += (total[j] - (s - b)) + (part[j] - b)
        total[j], part[j] = s, 0.0


@compiled
def _margins(Z: Array, f: Array, z: Array) -> None:
    """z = Z f, with four partial sums for each row."""
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
    """Replace each z by weight * clipped_slope(z, limit).

    The results have the same bits as those of `clipped_slope`, but a compiler can vectorise these loops.
    """
    for n in range(len(limits)):
        powers[n], series[n] = exp_parts(-min(abs(z[n]), 700.0))
    for n in range(len(limits)):
        powers[n] = power_of_two(powers[n])
    for n in range(len(limits)):
        tail = series[n] * powers[n]
        slope = min(1.0 / (1.0 + tail), limits[n])
        z[n] = weights[n] * (slope * tail if z[n] > 0.0 else slope)


@compiled
def _add_rows(part: Array, Z: Array, psi: Array) -> None:
    """part += sum_n psi[n] Z[n], in the order of the rows. A pass over `part` adds four rows, for speed."""
    fours = len(Z) - len(Z) % 4
    for n in range(0, fours, 4):
        a, b, c, e = psi[n], psi[n + 1], psi[n + 2], psi[n + 3]
        for j in range(len(part)):
            part[j] = (((part[j] + a * Z[n, j]) + b * Z[n + 1, j]) + c * Z[n + 2, j]) + e * Z[n + 3, j]
    for n in range(fours, len(Z)):
        for j in range(len(part)):
            part[j] += psi[n] * Z[n, j]


@compiled
def add_dense(total: Array, lost: Array, Z: Array, f: Array, limits: Array, weights: Array) -> None:
    """Add the sum of psi Z over dense rows to total + lost, one group of rows after the other."""
    rows, d = Z.shape
    part = np.zeros(d)
    psi, powers, series = np.zeros(GROUP), np.zeros(GROUP), np.zeros(GROUP)
    for first in range(0, rows, GROUP):
        last = min(first + GROUP, rows)
        _margins(Z[first:last], f, psi)
        _slopes(psi, limits[first:last], weights[first:last], powers, series)
        _add_rows(part, Z[first:last], psi)
        _add(total, lost, part)


@compiled
def add_sparse(
    total: Array,
    lost: Array,
    data: Array,
    indices: Indices,
    indptr: Indices,
    f: Array,
    limits: Array,
    weights: Array,
) -> None:
    """Add the sum of psi Z over the rows of a CSR matrix to total + lost."""
    part = np.zeros(len(f))
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
