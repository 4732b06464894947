"""The rows of one site: checked, multiplied by their signs, and stored once as a matrix Z.

The loss takes one number z per row: the margin y f.x for classification, or the residual y - f.x for
regression, where f is the model. Classification: Z = y X, so that z = Z f. Regression: Z = -X and offset = y,
so that z = offset + Z f. A large dense array of mostly zeros, such as one-hot columns, is stored as CSR,
which is smaller and faster. Lazy rows (`LazyRows`) are computed a few at a time whenever they are read, to
save memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core.errors import DataError
from ..core.types import Array, LazyRows, row_slices
from .losses import Kind

Matrix = NDArray[np.float64] | sparse.csr_array

_LARGEST = 1e50  # larger entries are refused, because a squared row norm must not overflow
FARTHEST = 1e9
"""Targets are clipped to [-FARTHEST, FARTHEST], so that one record cannot make the solver overflow. The limit
is so large that it does not change useful models."""
_SPARSE = 0.15  # up to this share of nonzero entries, products with CSR are faster than with dense arrays
_WORTH = 2_000  # a dense array with fewer entries is never stored as CSR
_FEW = 2**18  # up to this many entries, lazy rows are computed once and stored


@dataclass(frozen=True, eq=False)
class LazyMatrix:
    """A matrix Z whose rows are computed from `source` a few at a time, and multiplied by `sign`.

    thin : whether Z is mostly zeros. If so, its rows are computed as CSR, else as dense arrays.
    chosen : the indices of the rows of `source` that belong to Z; None for all rows.
    """

    source: LazyRows
    sign: Array
    thin: bool
    chosen: NDArray[np.intp] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.source) if self.chosen is None else len(self.chosen), self.source.shape[1]

    def rows(self, some: slice) -> Matrix:
        """Compute the rows of this slice, as a dense array or as CSR."""
        numbers = some if self.chosen is None else self.chosen[some]
        rows = self.source.take(numbers)
        if not self.thin:
            return np.multiply(rows, self.sign[numbers][:, None], out=rows)
        features = sparse.csr_array(rows)
        features.data *= np.repeat(self.sign[numbers], np.diff(features.indptr))
        return features

    def some(self, chosen: NDArray[np.bool_]) -> LazyMatrix:
        """A lazy matrix of the chosen rows."""
        return replace(self, chosen=np.flatnonzero(chosen))

    def held(self) -> Matrix:
        """The whole matrix, computed now."""
        if self.thin:
            pieces: list[Any] = [piece for _, piece in row_pieces(self)]
            return sparse.csr_array(sparse.vstack(pieces, format="csr"))
        whole = np.empty(self.shape)
        for some, piece in row_pieces(self):
            whole[some] = np.asarray(piece)
        return whole


AnyMatrix = Matrix | LazyMatrix


def row_pieces(Z: AnyMatrix) -> Iterator[tuple[slice, Matrix]]:
    """Pairs (slice of row indices, rows): many small pieces if Z is lazy, one piece if Z is stored."""
    if isinstance(Z, LazyMatrix):
        yield from ((some, Z.rows(some)) for some in row_slices(*Z.shape))
    else:
        yield slice(0, Z.shape[0]), Z


@dataclass(frozen=True, eq=False)
class Rows:
    """A site's rows: Z and offset in z = offset + Z f. Z is dense (C order), CSR or lazy, and read-only."""

    Z: AnyMatrix
    offset: Array | None
    norm: float  # max ||x||
    width: int  # the largest number of nonzero entries in a row
    largest_offset: float  # max |offset|

    def held(self) -> Rows:
        """The same rows as a stored matrix; lazy rows are computed now."""
        if not isinstance(self.Z, LazyMatrix):
            return self
        Z = self.Z.held()
        _frozen(Z if isinstance(Z, np.ndarray) else Z.data)
        return replace(self, Z=Z)

    @property
    def matrix(self) -> Matrix:
        """Z as a stored matrix; a lazy Z is computed now."""
        return self.Z.held() if isinstance(self.Z, LazyMatrix) else self.Z

    @property
    def samples(self) -> int:
        """B, the number of rows."""
        return int(self.Z.shape[0])

    @property
    def dimension(self) -> int:
        """d, the number of features."""
        return int(self.Z.shape[1])

    def __repr__(self) -> str:
        form = "lazy" if isinstance(self.Z, LazyMatrix) else "CSR" if sparse.issparse(self.Z) else "dense"
        return f"Rows({self.samples} x {self.dimension}, {form})"


def signed_rows(X: Any, y: Any, kind: Kind, *, site: str, overwrite: bool = False) -> Rows:
    """Check one site's data and return its signed rows. Errors name the site and never quote the data.

    overwrite : True if a dense X may be changed in place.
    """
    if isinstance(X, LazyRows):
        if X.size > _FEW:
            return _signed_lazily(X, y, kind, site)
        X, overwrite = np.asarray(X), True
    features = _csr(X, site) if sparse.issparse(X) else _dense(X, site)
    if features.shape[0] == 0:
        raise DataError(f"{site} is empty: each site needs at least one row.")
    if features.shape[1] == 0:
        raise DataError(f"`X` of {site} has no features.")
    labels = _labels(y, kind, features.shape[0], site)
    sign = labels if kind == "classification" else -np.ones_like(labels)
    if isinstance(features, np.ndarray) and features.size >= _WORTH:
        if np.count_nonzero(features) <= _SPARSE * features.size:
            features = sparse.csr_array(features)
    if isinstance(features, np.ndarray):
        Z: Matrix = _frozen(np.multiply(features, sign[:, None], out=features if overwrite else None))
    else:
        features.data *= np.repeat(sign, np.diff(features.indptr))
        _frozen(features.data)
        Z = features
    counts = np.count_nonzero(Z, axis=1) if isinstance(Z, np.ndarray) else np.diff(Z.indptr)
    return _with_offset(Z, labels, kind, _largest_norm(Z, site), int(np.max(counts)))


def _signed_lazily(X: LazyRows, y: Any, kind: Kind, site: str) -> Rows:
    """The signed rows of a lazy X. All rows are computed for the checks, but they are not stored."""
    labels = _labels(y, kind, len(X), site)
    sign = labels if kind == "classification" else -np.ones_like(labels)
    stored = width = 0
    for some in X.slices():
        rows = X.take(some)
        _check_finite(rows, "X", site)
        counts = np.count_nonzero(rows, axis=1)
        stored, width = stored + int(counts.sum()), max(width, int(counts.max()))
    Z = LazyMatrix(X, sign, thin=stored <= _SPARSE * X.size)
    largest = max(_largest_norm(piece, site) for _, piece in row_pieces(Z))
    return _with_offset(Z, labels, kind, largest, width)


def _with_offset(Z: AnyMatrix, labels: Array, kind: Kind, norm: float, width: int) -> Rows:
    """The signed rows. In a regression, the offset consists of the clipped targets."""
    offset = None if kind == "classification" else _frozen(np.clip(labels, -FARTHEST, FARTHEST))
    farthest = 0.0 if offset is None else float(np.max(np.abs(offset)))
    return Rows(Z, offset, norm, width, farthest)


def some_rows(rows: Rows, chosen: NDArray[np.bool_]) -> Rows:
    """The chosen rows, with the norm and width of all rows, which are upper bounds for the chosen rows."""
    if chosen.all():
        return rows
    offset = None if rows.offset is None else _frozen(rows.offset[chosen])
    if isinstance(rows.Z, LazyMatrix):
        return replace(rows, Z=rows.Z.some(chosen), offset=offset)
    Z: Matrix = rows.Z[chosen]
    _frozen(Z if isinstance(Z, np.ndarray) else Z.data)
    return replace(rows, Z=Z, offset=offset)


def _csr(X: Any, site: str) -> sparse.csr_array:
    if X.ndim != 2:
        raise DataError(f"`X` of {site} must be 2-D, rows by features; got {X.ndim}-D.")
    _check_dtype(X.dtype, "X", site)
    features = sparse.csr_array(X, dtype=np.float64, copy=True)
    try:
        features.check_format()
    except ValueError:  # without this check, a product would read memory outside the arrays
        raise DataError(f"`X` of {site} has row pointers or column indices outside its shape.") from None
    features.sum_duplicates()
    _check_finite(features.data, "X", site)
    return features


def _dense(X: Any, site: str) -> Array:
    features = _array(X, "X", site)
    if features.ndim != 2:
        hint = "; reshape one feature with X[:, None]" if features.ndim == 1 else ""
        raise DataError(f"`X` of {site} must be 2-D, rows by features; got {features.ndim}-D{hint}.")
    return features


def _labels(y: Any, kind: Kind, samples: int, site: str) -> Array:
    labels = _array(y, "y", site)
    if labels.shape != (samples,):
        raise DataError(f"`y` of {site} must have shape ({samples},), one entry per row; got {labels.shape}.")
    if kind == "classification" and not np.all(np.abs(labels) == 1.0):
        raise DataError(f"`y` of {site} must contain only -1 and +1; for labels 0 and 1 pass 2 * y - 1.")
    return labels


def _array(values: Any, name: str, site: str) -> Array:
    if isinstance(values, np.ma.MaskedArray):
        raise DataError(f"`{name}` of {site} is a masked array; fill or remove the masked entries.")
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"`{name}` of {site} must be an array; its rows differ in length.") from None
    _check_dtype(array.dtype, name, site)
    array = np.ascontiguousarray(array, dtype=np.float64) if array.ndim else array.astype(np.float64)
    _check_finite(array, name, site)
    return array


def _check_dtype(dtype: np.dtype[Any], name: str, site: str) -> None:
    if dtype.kind not in "iuf":
        raise DataError(f"`{name}` of {site} must contain real numbers; got dtype {dtype}.")


def _check_finite(array: Array, name: str, site: str) -> None:
    if not np.all(np.isfinite(array)):
        raise DataError(f"`{name}` of {site} contains NaN or infinity; impute the values or remove the rows.")


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _largest_norm(Z: Matrix, site: str) -> float:
    entries = Z if isinstance(Z, np.ndarray) else Z.data
    largest = max(float(np.max(entries, initial=0.0)), -float(np.min(entries, initial=0.0)))
    if largest > _LARGEST:
        raise DataError(f"`X` of {site} has entries above {_LARGEST:g}; rescale the features.")
    if largest == 0.0:
        return 0.0
    if isinstance(Z, np.ndarray):
        squares = np.einsum("nd,nd->n", Z, Z)
    else:
        squares = np.asarray(Z.multiply(Z).sum(axis=1)).ravel()
    return max(largest, float(np.sqrt(np.max(squares))))
