"""Clip rows to norm at most `data_norm`, in the same way before a fit and before a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array

from ...core import checks
from ...core.types import Array, LazyRows, row_slices


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of SciPy."""
    return bool(sparse.issparse(X))


def row_norms(X: Any) -> Array:
    """||x|| of every row, without overflow: a larger norm is returned as the largest float."""
    if not is_sparse(X):  # in slices, so that no copy of all rows is made
        parts = row_slices(*X.shape)
        pieces = (X.take(some) if isinstance(X, LazyRows) else X[some] for some in parts)
        pairs = [row_lengths(piece) for piece in pieces] or [row_lengths(X)]
        largest, length = (np.concatenate(part) for part in zip(*pairs, strict=True))
    else:
        largest, length = row_lengths(merge_entries(X))
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(largest * length, np.finfo(np.float64).max))


def clip_rows(X: Any, bound: float) -> Any:
    """x min(1, bound / ||x||) for every row, dense or CSR, within the bound in spite of rounding errors."""
    X = merge_entries(X)
    factors = bound * shrink_factors(X, bound)
    return X.multiply(factors[:, None]).tocsr() if is_sparse(X) else X * factors[:, None]


def shrink_factors(X: Any, bound: float) -> Array:
    """1 / max(||x||, bound) for every row, made slightly smaller where ||x|| is not clearly below the bound.

    So a row that is multiplied by its factor has a computed norm of at most 1, in spite of rounding.
    """
    largest, length = row_lengths(X)
    spare = 1.0 + (8 + X.shape[1]) * np.finfo(np.float64).eps
    with np.errstate(over="ignore"):
        long = largest * length > bound / spare
    safe = np.where(long, largest, 1.0)
    return np.where(long, 1.0 / (length * spare) / safe, 1.0 / bound)


def merge_entries(X: Any) -> Any:
    """X with every entry stored once: duplicate entries of a CSR matrix are summed."""
    if not is_sparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    with np.errstate(over="ignore"):
        X.sum_duplicates()
    X.data = np.nan_to_num(X.data)  # a sum may have overflowed
    return X


def row_lengths(X: Any) -> tuple[Array, Array]:
    """(max |x_j|, ||x|| / max |x_j|) of every row; (0, 1) for a row of zeros. Squares cannot overflow."""
    if is_sparse(X):
        at = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        largest = np.zeros(X.shape[0])
        np.maximum.at(largest, at, np.abs(X.data))
        safe = np.where(largest > 0, largest, 1.0)
        length = np.sqrt(np.bincount(at, np.square(X.data / safe[at]), X.shape[0]))
        return largest, np.maximum(length, 1.0)
    largest = np.abs(X).max(axis=1, initial=0.0)
    safe = np.where(largest > 0, largest, 1.0)
    return largest, np.maximum(np.linalg.norm(X / safe[:, None], axis=1), 1.0)


def whitened_factors(X: Any, whitening: Array | None) -> Array:
    """min(1, 1 / ||V x + v||) of every row; `whitening` is V with v as its last column.

    The scores of a model that was trained on whitened rows V x + v are multiplied by these factors. If
    `whitening` is None, all factors are 1.
    """
    if whitening is None:
        return np.ones(X.shape[0])
    V = np.asarray(whitening)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(np.nan_to_num(X @ V[:, :-1].T + V[:, -1]), axis=1)
    return np.asarray(1.0 / np.maximum(lengths, 1.0))


@dataclass(eq=False, repr=False)
class RowClipper(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """x min(1, data_norm / ||x||): the clipping that a private fit does, as a step of a pipeline.

    `fit` learns nothing from X, because the bound `data_norm` is public.

    >>> RowClipper(data_norm=1.0).transform([[0.3, 0.4], [3.0, 4.0]]).round(6)
    array([[0.3, 0.4],
           [0.6, 0.8]])
    """

    data_norm: float = 1.0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check `data_norm`; no value of X is read."""
        checks.positive("data_norm", self.data_norm)
        return self

    def transform(self, X: Any) -> Any:
        """The clipped rows."""
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
        return clip_rows(X, checks.positive("data_norm", self.data_norm))

    def __sklearn_is_fitted__(self) -> bool:
        return True
