"""The rows of one site, checked, signed, and held once.

Classification: Z = y X, so that z = Z f. Regression: Z = -X and offset = y, so that z = offset + Z f.
A dense array of mostly zeros, such as one-hot columns, is kept as CSR: smaller, and quicker to multiply.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core.errors import DataError
from ..core.types import Array
from .losses import Kind

Matrix = NDArray[np.float64] | sparse.csr_array

_LARGEST = 1e50  # a squared row norm must not overflow
FARTHEST = 1e9
"""A target farther from 0 counts as this: no model notices the difference, and one record cannot take
the solver to where floats end."""
_SPARSE = 0.15  # share of nonzero entries up to which CSR is quicker
_WORTH = 2_000  # entries from which that matters


@dataclass(frozen=True, eq=False)
class Rows:
    """z = offset + Z f, one entry per sample; Z dense in C order or CSR, float64, read-only."""

    Z: Matrix
    offset: Array | None
    norm: float  # max ||x||
    width: int  # the most nonzero entries in a row
    largest_offset: float  # max |offset|

    @property
    def samples(self) -> int:
        """B."""
        return int(self.Z.shape[0])

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.Z.shape[1])

    def __repr__(self) -> str:
        form = "CSR" if sparse.issparse(self.Z) else "dense"
        return f"Rows({self.samples} x {self.dimension}, {form})"


def signed_rows(X: Any, y: Any, kind: Kind, *, site: str, overwrite: bool = False) -> Rows:
    """Check one site's data and return its signed rows; errors name the site and never quote the data.

    `overwrite` : dense rows are not shared, and are signed in place.
    """
    features = _csr(X, site) if sparse.issparse(X) else _dense(X, site)
    if features.shape[0] == 0:
        raise DataError(f"{site} is empty: each site needs at least one row.")
    if features.shape[1] == 0:
        raise DataError(f"`X` of {site} has no feature.")
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
    offset = None if kind == "classification" else _frozen(np.clip(labels, -FARTHEST, FARTHEST))
    farthest = 0.0 if offset is None else float(np.max(np.abs(offset)))
    counts = np.count_nonzero(Z, axis=1) if isinstance(Z, np.ndarray) else np.diff(Z.indptr)
    return Rows(Z, offset, _largest_norm(Z, site), int(np.max(counts)), farthest)


def some_rows(rows: Rows, chosen: NDArray[np.bool_]) -> Rows:
    """Those rows that are chosen; the bounds of all of them hold for the few."""
    if chosen.all():
        return rows
    Z: Matrix = rows.Z[chosen]
    _frozen(Z if isinstance(Z, np.ndarray) else Z.data)
    return replace(rows, Z=Z, offset=None if rows.offset is None else _frozen(rows.offset[chosen]))


def _csr(X: Any, site: str) -> sparse.csr_array:
    if X.ndim != 2:
        raise DataError(f"`X` of {site} must be 2-D, rows by features; got {X.ndim}-D.")
    _check_dtype(X.dtype, "X", site)
    features = sparse.csr_array(X, dtype=np.float64, copy=True)
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
        raise DataError(f"`y` of {site} must have shape ({samples},), one per row of X; got {labels.shape}.")
    if kind == "classification" and not np.all(np.abs(labels) == 1.0):
        raise DataError(f"`y` of {site} must contain only -1 and +1; for labels 0 and 1 pass 2 * y - 1.")
    return labels


def _array(values: Any, name: str, site: str) -> Array:
    if isinstance(values, np.ma.MaskedArray):
        raise DataError(f"`{name}` of {site} is a masked array; fill or remove the masked entries.")
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"`{name}` of {site} must be a regular array of numbers; its rows differ.") from None
    _check_dtype(array.dtype, name, site)
    array = np.ascontiguousarray(array, dtype=np.float64) if array.ndim else array.astype(np.float64)
    _check_finite(array, name, site)
    return array


def _check_dtype(dtype: np.dtype[Any], name: str, site: str) -> None:
    if dtype.kind not in "iuf":
        raise DataError(f"`{name}` of {site} must contain real numbers; got dtype {dtype}.")


def _check_finite(array: Array, name: str, site: str) -> None:
    if not np.all(np.isfinite(array)):
        raise DataError(f"`{name}` of {site} contains NaN or infinity; impute or remove those rows first.")


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
