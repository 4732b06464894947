"""Compiled products of sparse rows with four models at a time, in a fixed order of summation.

The four models are the four columns of an array; such a column is called a lane. Numbers of different lanes
are never combined, so the product with a model does not depend on the other models.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core.types import Array
from ....kernels.arithmetic import compiled

LANES = 4


class SparseRows(NamedTuple):
    """One site's rows in CSR form; row n has the entries pointers[n] to pointers[n + 1] - 1.

    Columns and pointers are unsigned, so that numba need not check for negative indices. `norm` and `far` are
    max ||x|| and max |offset|.
    """

    entries: Array
    columns: NDArray[np.uint64]
    pointers: NDArray[np.uint64]
    offset: Array
    weight: float
    norm: float
    far: float
    width: float  # the largest number of entries in a row


@compiled
def sparse_rows(
    entries: Array,
    columns: NDArray[np.int32],
    pointers: NDArray[np.int64],
    offset: Array,
    numbers: tuple[float, float, float, float],
) -> SparseRows:
    """The rows between the first and the last pointer; `numbers` is (weight, norm, far, width)."""
    first, last = pointers[0], pointers[-1]
    weight, norm, far, width = numbers
    return SparseRows(
        entries[first:last],
        columns[first:last].astype(np.uint64),
        (pointers - first).astype(np.uint64),
        offset,
        weight,
        norm,
        far,
        width,
    )


@compiled
def forward(rows: SparseRows, V: Array, out: Array) -> None:
    """out = Z V, (rows, lanes)."""
    for n in range(len(out)):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for k in range(rows.pointers[n], rows.pointers[n + 1]):
            x, j = rows.entries[k], rows.columns[k]
            a += x * V[j, 0]
            b += x * V[j, 1]
            c += x * V[j, 2]
            d += x * V[j, 3]
        out[n, 0], out[n, 1], out[n, 2], out[n, 3] = a, b, c, d


@compiled
def backward(rows: SparseRows, S: Array, out: Array) -> None:
    """out = Z' S, (d, lanes)."""
    out[:] = 0.0
    for n in range(len(S)):
        a, b, c, d = S[n, 0], S[n, 1], S[n, 2], S[n, 3]
        for k in range(rows.pointers[n], rows.pointers[n + 1]):
            x, j = rows.entries[k], rows.columns[k]
            out[j, 0] += x * a
            out[j, 1] += x * b
            out[j, 2] += x * c
            out[j, 3] += x * d


@compiled
def margins(rows: SparseRows, F: Array, z: Array) -> None:
    """z = offset + Z F."""
    forward(rows, F, z)
    for n in range(len(rows.offset)):
        for r in range(LANES):
            z[n, r] += rows.offset[n]


@compiled
def dots(A: Array, B: Array, out: Array) -> None:
    """out[lane] = A[:, lane] . B[:, lane] for every lane, summed from the first row to the last."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(len(A)):
        a += A[i, 0] * B[i, 0]
        b += A[i, 1] * B[i, 1]
        c += A[i, 2] * B[i, 2]
        d += A[i, 3] * B[i, 3]
    out[0], out[1], out[2], out[3] = a, b, c, d


@compiled
def add_scaled(out: Array, by: Array, A: Array) -> None:
    """out[:, lane] += by[lane] * A[:, lane] for every lane."""
    for i in range(len(A)):
        for r in range(LANES):
            out[i, r] += by[r] * A[i, r]


@compiled
def fill_lanes(models: Array, first: int, out: Array) -> None:
    """Fill `out`, (d, lanes), with the models first, first + 1, ...; a lane without a model gets `first`."""
    for r in range(LANES):
        model = models[first + r] if first + r < len(models) else models[first]
        for j in range(len(out)):
            out[j, r] = model[j]
