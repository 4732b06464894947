"""A few rows at a time, so that Z F, the slopes and the product back stay in the processor's cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..core.errors import DataError
from ..core.types import Array
from .rows import Matrix, Rows, some_rows

_DENSE = 1_000_000  # entries of Z times models in a block of dense rows
_SPARSE = 100_000  # margins in a block of sparse rows
_THIN = 0.05  # share of nonzero entries below which a sparse Gram matrix is quicker
_FEWEST, _MOST = 64, 1024  # rows in a block; rounding grows with them


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """weight * sum_n L(z_n) over some rows."""

    rows: Rows
    weight: float


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Consecutive rows of one part; Z and its transpose are views of the site's only copy."""

    Z: Matrix
    ZT: Any
    offset: Array | None
    weight: float

    def margins(self, Ft: Array) -> Array:
        """z = offset + Z f for every row and model, (rows, repeats); models are the columns of Ft."""
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

    def products(self, others: list[Block], scale: Array) -> Array:
        """Z diag(scale) Y' for the rows Y of the other blocks, side by side."""
        scaled = self.Z * scale if isinstance(self.Z, np.ndarray) else self.Z.multiply(scale).tocsr()
        pieces = [scaled @ other.ZT for other in others]
        return np.concatenate([p if isinstance(p, np.ndarray) else p.toarray() for p in pieces], axis=1)

    @property
    def entries(self) -> int:
        """Stored entries."""
        return int(self.Z.size if isinstance(self.Z, np.ndarray) else self.Z.nnz)

    def squares(self, weights: Array) -> Array:
        """The diagonal of Z' diag(weights) Z."""
        if isinstance(self.Z, np.ndarray):
            return np.asarray(weights @ np.square(self.Z))
        return np.asarray(self.Z.multiply(self.Z).T @ weights)


def weighted_parts(rows: Rows, weights: Any, unit: float, *, site: str) -> tuple[WeightedRows, ...]:
    """One part for each weight that occurs, `unit` times as heavy; rows of weight 0 are left out."""
    if weights is None:
        return (WeightedRows(rows, unit),)
    values = np.asarray(weights)
    if values.shape != (rows.samples,) or values.dtype.kind not in "fiu":
        raise DataError(f"`weights` of {site} must be {rows.samples} numbers, one per row.")
    if not np.all((values >= 0) & (values <= 1)) or not np.any(values > 0):
        raise DataError(f"`weights` of {site} must be between 0 and 1, one of them above 0.")
    kept = [weight for weight in np.unique(values)[::-1].tolist() if weight > 0]
    return tuple(WeightedRows(some_rows(rows, values == weight), unit * weight) for weight in kept)


def row_blocks(parts: tuple[WeightedRows, ...], repeats: int) -> list[Block]:
    """Cut every part into blocks that suit this number of models."""
    return [block for part in parts for block in _cut(part, max(1, repeats))]


def _cut(part: WeightedRows, repeats: int) -> list[Block]:
    Z, offset = part.rows.Z, part.rows.offset
    rows, dimension = Z.shape
    dense = isinstance(Z, np.ndarray)
    step = _DENSE // (dimension * repeats) if dense else _SPARSE // repeats
    step = min(max(step, _FEWEST), _MOST if dense else 16 * _MOST)
    if rows <= step:
        return [Block(Z, Z.T, offset, part.weight)]
    blocks = []
    for start in range(0, rows, step):
        stop = min(start + step, rows)
        some = None if offset is None else offset[start:stop]
        if isinstance(Z, np.ndarray):
            blocks.append(Block(Z[start:stop], Z[start:stop].T, some, part.weight))
        else:
            piece = _csr_rows(Z, start, stop)
            blocks.append(Block(piece, _transpose(piece), some, part.weight))
    return blocks


def _csr_rows(Z: sparse.csr_array, start: int, stop: int) -> sparse.csr_array:
    """Rows start..stop as a view: slicing would copy, and so would the constructor."""
    first, last = Z.indptr[start], Z.indptr[stop]
    rows = sparse.csr_array((stop - start, Z.shape[1]), dtype=np.float64)
    rows.data, rows.indices = Z.data[first:last], Z.indices[first:last]
    rows.indptr = Z.indptr[start : stop + 1] - first
    return rows


def _transpose(Z: sparse.csr_array) -> sparse.csc_array:
    """Z' as a view; Z.T would copy what is itself a view."""
    columns = sparse.csc_array((Z.shape[1], Z.shape[0]), dtype=np.float64)
    columns.data, columns.indices, columns.indptr = Z.data, Z.indices, Z.indptr
    return columns
