"""Symmetric matrices of a few rows, compiled: the upper triangle, in place, one fixed order of operations."""

from __future__ import annotations

import math

from ....core.types import Array
from ....kernels.arithmetic import compiled


@compiled
def add_gram(A: Array, Z: Array, weights: Array) -> None:
    """A += Z' diag(weights) Z, four rows at a time."""
    rows, d = Z.shape
    fours = rows - rows % 4
    for n in range(0, fours, 4):
        for i in range(d):
            a, b = weights[n] * Z[n, i], weights[n + 1] * Z[n + 1, i]
            c, e = weights[n + 2] * Z[n + 2, i], weights[n + 3] * Z[n + 3, i]
            for j in range(i, d):
                A[i, j] += (a * Z[n, j] + b * Z[n + 1, j]) + (c * Z[n + 2, j] + e * Z[n + 3, j])
    for n in range(fours, rows):
        for i in range(d):
            a = weights[n] * Z[n, i]
            for j in range(i, d):
                A[i, j] += a * Z[n, j]


@compiled
def factor(A: Array, size: int) -> bool:
    """A = U'U; False where A is not positive, to floats."""
    for k in range(size):
        pivot = A[k, k]
        if not pivot > 0.0:
            return False
        scale = 1.0 / math.sqrt(pivot)
        for j in range(k, size):
            A[k, j] *= scale
        for i in range(k + 1, size):
            c = A[k, i]
            for j in range(i, size):
                A[i, j] -= c * A[k, j]
    return True


@compiled
def solve(U: Array, size: int, v: Array) -> None:
    """v becomes (U'U)^-1 v."""
    for k in range(size):
        v[k] /= U[k, k]
        c = v[k]
        for j in range(k + 1, size):
            v[j] -= c * U[k, j]
    for k in range(size - 1, -1, -1):
        total = 0.0
        for j in range(k + 1, size):
            total += U[k, j] * v[j]
        v[k] = (v[k] - total) / U[k, k]


@compiled
def product(At: Array, v: Array, out: Array) -> None:
    """out = A v, the transpose of A given: columns are added one after the other."""
    rows = len(out)
    for n in range(rows):
        out[n] = 0.0
    for j in range(len(v)):
        c = v[j]
        for n in range(rows):
            out[n] += c * At[j, n]
