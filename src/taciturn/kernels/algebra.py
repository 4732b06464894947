"""Linear algebra with the same bits on every machine: compiled loops in a fixed order, no BLAS, no LAPACK.

In the method `MaskedDescent` every site computes the next model for itself from the same public sums, and all
sites must get the same bits. The libraries BLAS and LAPACK sum in an order that depends on the processor. The
order of summation in these loops is fixed. Most inner loops update each entry of a row separately, so vector
instructions change no result.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.types import Array
from .arithmetic import compiled, dot

_TINY = 2.0**-52
_TURNS = 60  # the most QL steps for one eigenvalue; usually two or three are enough


@compiled
def transposed_product(A: Array, x: Array) -> Array:
    """A' x = sum_i x_i A[i], summed from the first row of A to the last."""
    total = np.zeros(A.shape[1])
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            total[j] += x[i] * A[i, j]
    return total


@compiled
def product(A: Array, x: Array) -> Array:
    """A x; each entry is summed from the first column to the last."""
    result = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        result[i] = dot(A[i], x)
    return result


@compiled
def total(x: Array) -> float:
    """The sum of all entries, from the first to the last."""
    result = 0.0
    for i in range(len(x)):
        result += x[i]
    return result


@compiled
def rebuild(values: Array, vectors: Array) -> Array:
    """sum_k values_k v_k v_k', where the v_k are the rows of `vectors`."""
    d = vectors.shape[1]
    A = np.zeros((d, d))
    for k in range(len(values)):
        if values[k] != 0.0:
            for i in range(d):
                weight = values[k] * vectors[k, i]
                for j in range(d):
                    A[i, j] += weight * vectors[k, j]
    return A


@compiled
def eigenpairs(A: Array) -> tuple[Array, Array]:
    """(eigenvalues, eigenvectors as rows) of a symmetric matrix, in no particular order.

    Householder reflections make the matrix tridiagonal; QL steps with Wilkinson's shift then make it
    diagonal.
    """
    diagonal, off, Z = _tridiagonal(A.copy())
    _ql(diagonal, off, Z)
    return diagonal, Z


@compiled
def _tridiagonal(A: Array) -> tuple[Array, Array, Array]:
    """(diagonal, off, Z) with A = Z' T Z; T is tridiagonal, and off[i] = T[i, i + 1]. A is overwritten."""
    d = A.shape[0]
    off, scale = np.zeros(d), np.zeros(d)
    v, p = np.zeros(d), np.zeros(d)
    for k in range(d - 2):
        square = 0.0
        for i in range(k + 1, d):
            square += A[i, k] * A[i, k]
        size = math.sqrt(square)
        off[k] = -size if A[k + 1, k] > 0 else size
        if size == 0.0:
            continue
        for i in range(k + 1, d):
            v[i], p[i] = A[i, k], 0.0
        v[k + 1] -= off[k]
        length = square - A[k + 1, k] * off[k]  # v'v / 2
        for i in range(k + 1, d):
            for j in range(k + 1, d):
                p[j] += v[i] * A[i, j]
        inner = 0.0
        for i in range(k + 1, d):
            p[i] /= length
            inner += p[i] * v[i]
        for i in range(k + 1, d):
            p[i] -= 0.5 * inner / length * v[i]
        for i in range(k + 1, d):
            for j in range(k + 1, d):
                A[i, j] -= v[i] * p[j] + p[i] * v[j]
        scale[k] = length
        for i in range(k + 1, d):
            A[k, i] = v[i]  # the row is no longer needed: store the reflection in it
    diagonal = np.zeros(d)
    for i in range(d):
        diagonal[i] = A[i, i]
    if d > 1:
        off[d - 2] = A[d - 1, d - 2]
    return diagonal, off, _reflect(A, scale)


@compiled
def _reflect(A: Array, scale: Array) -> Array:
    """The transpose of the product of the reflections that `_tridiagonal` stored in the rows of A."""
    d = A.shape[0]
    Q, u = np.eye(d), np.zeros(d)
    for k in range(d - 3, -1, -1):
        if scale[k] == 0.0:
            continue
        for j in range(k + 1, d):
            u[j] = 0.0
        for i in range(k + 1, d):
            for j in range(k + 1, d):
                u[j] += A[k, i] * Q[i, j]
        for i in range(k + 1, d):
            weight = A[k, i] / scale[k]
            for j in range(k + 1, d):
                Q[i, j] -= weight * u[j]
    return np.ascontiguousarray(Q.T)


@compiled
def _ql(diagonal: Array, off: Array, Z: Array) -> None:
    """Make the tridiagonal matrix diagonal by QL steps; the rows of Z become the eigenvectors."""
    d = len(diagonal)
    for low in range(d):
        for _ in range(_TURNS):
            m = low
            while m < d - 1 and abs(off[m]) > _TINY * (abs(diagonal[m]) + abs(diagonal[m + 1])):
                m += 1
            if m == low:
                break
            _ql_step(diagonal, off, Z, low, m)


@compiled
def _ql_step(diagonal: Array, off: Array, Z: Array, low: int, m: int) -> None:
    """One implicit QL step on rows low to m. The shift is an eigenvalue of their first 2 x 2 block."""
    g = (diagonal[low + 1] - diagonal[low]) / (2.0 * off[low])
    r = math.sqrt(g * g + 1.0)
    g = diagonal[m] - diagonal[low] + off[low] / (g + (r if g >= 0 else -r))
    s, c, p = 1.0, 1.0, 0.0
    for i in range(m - 1, low - 1, -1):
        f, b = s * off[i], c * off[i]
        r = math.sqrt(f * f + g * g)
        off[i + 1] = r
        if r == 0.0:
            diagonal[i + 1] -= p
            off[m] = 0.0
            return
        s, c = f / r, g / r
        g = diagonal[i + 1] - p
        r = (diagonal[i] - g) * s + 2.0 * c * b
        p = s * r
        diagonal[i + 1] = g + p
        g = c * r - b
        for j in range(Z.shape[1]):
            upper = Z[i + 1, j]
            Z[i + 1, j] = s * Z[i, j] + c * upper
            Z[i, j] = c * Z[i, j] - s * upper
    diagonal[low] -= p
    off[low] = g
    off[m] = 0.0


@compiled
def matrix_product(A: Array, B: Array) -> Array:
    """A B; each entry is summed from the first row of B to the last."""
    C = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            a = A[i, k]
            for j in range(B.shape[1]):
                C[i, j] += a * B[k, j]
    return C


@compiled
def factor(A: Array, size: int) -> bool:
    """Replace the upper triangle of A by U with A = U'U (Cholesky); False if A is not positive definite."""
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
    """Replace v by (U'U)^-1 v, for the upper triangular U of `factor`."""
    for k in range(size):
        v[k] /= U[k, k]
        c = v[k]
        for j in range(k + 1, size):
            v[j] -= c * U[k, j]
    for k in range(size - 1, -1, -1):
        rest = 0.0
        for j in range(k + 1, size):
            rest += U[k, j] * v[j]
        v[k] = (v[k] - rest) / U[k, k]


@compiled
def solve_positive(A: Array, b: Array) -> Array:
    """A^-1 b for a symmetric positive definite A, by Cholesky factorisation; A is overwritten."""
    x = b.copy()
    factor(A, len(b))
    solve(A, len(b), x)
    return x
