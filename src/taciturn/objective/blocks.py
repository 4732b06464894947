"""Cut a site's rows into blocks so small that all arrays of a block fit into the processor's cache.

Z is the matrix of a site's rows, and z = offset + Z f are the margins of a model f (see rows.py). A solver
works on several models f at once; their number is `repeats`. Lazy rows are computed when needed, not stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..core.errors import DataError
from ..core.types import Array
from .rows import LazyMatrix, Matrix, Rows, some_rows

_DENSE = 1_000_000  # the largest (entries of Z) * (number of models) of a block of dense rows
_SPARSE = 100_000  # the largest number of margins (rows * models) of a block of sparse rows
_THIN = 0.05  # if the share of nonzero entries is below this, Z' W Z is computed as a sparse product
_FEWEST, _MOST = 64, 1024  # limits on the number of dense rows in a block; rounding errors grow with it


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows with the same weight. They add weight * sum_n L(z_n) to the objective."""

    rows: Rows
    weight: float


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Consecutive rows with the same weight. Z and its transpose ZT are views of the site's stored rows."""

    Z: Matrix
    ZT: Any
    offset: Array | None
    weight: float

    def margins(self, Ft: Array) -> Array:
        """The margins z = offset + Z f, (rows, models). The models f are the columns of Ft."""
        z = np.asarray(self.Z @ Ft)
        if self.offset is not None:
            z += self.offset[:, None]
        return z

    def gram(self, weights: Array) -> Array:
        """Z' diag(weights) Z for weights >= 0."""
        root = np.sqrt(weights)
        if isinstance(self.Z, np.ndarray):
            scaled = self.Z * root[:, None]
            return np.asarray(scaled.T @ scaled)
        rows, d = self.Z.shape
        if self.Z.nnz < _THIN * rows * d:
            thin = self.Z.multiply(root[:, None]).tocsr()
            return np.asarray((thin.T @ thin).toarray())
        total = np.zeros((d, d))
        for start in range(0, rows, _MOST):
            stop = min(start + _MOST, rows)
            scaled = _csr_rows(self.Z, start, stop).toarray() * root[start:stop, None]
            total += scaled.T @ scaled
        return total

    def products(self, blocks: Sequence[Block], scale: Array) -> Array:
        """Z diag(scale) Y', (rows, rows of all blocks), where Y stacks the rows of `blocks`."""
        scaled = self.Z * scale if isinstance(self.Z, np.ndarray) else self.Z.multiply(scale).tocsr()
        pieces = [scaled @ block.ZT for block in blocks]
        return np.concatenate([p if isinstance(p, np.ndarray) else p.toarray() for p in pieces], axis=1)

    def squares(self, weights: Array) -> Array:
        """The diagonal of Z' diag(weights) Z."""
        squared = np.square(self.Z) if isinstance(self.Z, np.ndarray) else self.Z.multiply(self.Z)
        return np.asarray(squared.T @ weights)


def weighted_parts(rows: Rows, weights: Any, unit: float, *, site: str) -> tuple[WeightedRows, ...]:
    """Group the rows by weight. Each weight is multiplied by `unit`; rows of weight 0 are left out."""
    if weights is None:
        return (WeightedRows(rows, unit),)
    values = np.asarray(weights)
    if values.shape != (rows.samples,) or values.dtype.kind not in "fiu":
        raise DataError(f"`weights` of {site} must be {rows.samples} numbers, one per row.")
    if not np.all((values >= 0) & (values <= 1)) or not np.any(values > 0):
        raise DataError(f"`weights` of {site} must be between 0 and 1, at least one of them above 0.")
    kept = [weight for weight in np.unique(values)[::-1].tolist() if weight > 0]
    return tuple(WeightedRows(some_rows(rows, values == weight), unit * weight) for weight in kept)


class LazyBlocks(Sequence[Block]):
    """A sequence of blocks for lazy rows. A block is computed at each access and is not stored."""

    def __init__(self, cuts: list[tuple[WeightedRows, int, int]]) -> None:
        self.cuts = cuts

    def __len__(self) -> int:
        return len(self.cuts)

    def __getitem__(self, at: Any) -> Any:
        return LazyBlocks(self.cuts[at]) if isinstance(at, slice) else _block(*self.cuts[at])


def row_blocks(parts: tuple[WeightedRows, ...], repeats: int) -> Sequence[Block]:
    """Cut the rows of every part into blocks; the more models (`repeats`), the fewer rows in a block."""
    cuts = [(part, *ends) for part in parts for ends in _cut(part, max(1, repeats))]
    if any(isinstance(part.rows.Z, LazyMatrix) for part in parts):
        return LazyBlocks(cuts)
    return [_block(*cut) for cut in cuts]


def _cut(part: WeightedRows, repeats: int) -> list[tuple[int, int]]:
    """The (first row, last row + 1) of every block of a part."""
    Z = part.rows.Z
    rows, dimension = Z.shape
    dense = not Z.thin if isinstance(Z, LazyMatrix) else isinstance(Z, np.ndarray)
    step = _DENSE // (dimension * repeats) if dense else _SPARSE // repeats
    step = min(max(step, _FEWEST), _MOST if dense else 16 * _MOST)
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


def _block(part: WeightedRows, start: int, stop: int) -> Block:
    Z, offset = part.rows.Z, part.rows.offset
    if (start, stop) == (0, Z.shape[0]) and not isinstance(Z, LazyMatrix):
        return Block(Z, Z.T, offset, part.weight)
    some = slice(start, stop)
    if isinstance(Z, LazyMatrix):
        piece = Z.rows(some)
    else:
        piece = Z[some] if isinstance(Z, np.ndarray) else _csr_rows(Z, start, stop)
    back = piece.T if isinstance(piece, np.ndarray) else _transpose(piece)
    return Block(piece, back, None if offset is None else offset[some], part.weight)


def _csr_rows(Z: sparse.csr_array, start: int, stop: int) -> sparse.csr_array:
    """Rows start, ..., stop - 1 of Z as a view. Slices of Z and the CSR constructor would copy them."""
    first, last = Z.indptr[start], Z.indptr[stop]
    rows = sparse.csr_array((stop - start, Z.shape[1]), dtype=np.float64)
    rows.data, rows.indices = Z.data[first:last], Z.indices[first:last]
    rows.indptr = Z.indptr[start : stop + 1] - first
    return rows


def _transpose(Z: sparse.csr_array) -> sparse.csc_array:
    """Z' as a view; scipy's Z.T would copy the data of a view."""
    columns = sparse.csc_array((Z.shape[1], Z.shape[0]), dtype=np.float64)
    columns.data, columns.indices, columns.indptr = Z.data, Z.indices, Z.indptr
    return columns
