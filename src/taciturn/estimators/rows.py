"""Rows inside the unit ball: x and a constant, clipped and scaled by public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..types import Array


@dataclass(frozen=True)
class Ball:
    """||x|| <= bound  ->  z = (x / bound, c) / sqrt(1 + c^2), ||z|| <= 1; without intercept z = x / bound.

    A longer x is first clipped to the bound. The intercept is an entry of the same clipped and regularised
    vector, since one that escapes the bound would void the proof. A model f of z is a model of x:
    f.z = coef.x + intercept. The smaller c, the less of the ball the constant takes from x, and the harder
    the regulariser holds the intercept.
    """

    bound: float
    intercept: bool
    c: float = 0.5

    @property
    def share(self) -> float:
        """What is left for x."""
        return 1.0 / math.hypot(1.0, self.c) if self.intercept else 1.0

    @property
    def constant(self) -> float:
        """The last entry of z."""
        return self.c / math.hypot(1.0, self.c)

    def rows(self, X: Any, keep: NDArray[np.bool_] | None = None) -> Any:
        """z for every row of X, dense or CSR; all zeros, the constant too, where `keep` is False."""
        X = _summed(X)
        factors = self.share * self._shrink(X)
        ones = np.full((X.shape[0], 1), self.constant)
        if keep is not None:
            factors, ones = np.where(keep, factors, 0.0), np.where(keep[:, None], ones, 0.0)
        if _is_sparse(X):
            scaled = X.multiply(factors[:, None]).tocsr()
            return _beside(scaled, ones) if self.intercept else scaled
        scaled = X * factors[:, None]
        return np.hstack([scaled, ones]) if self.intercept else scaled

    def model(self, f: Array) -> tuple[Array, Array]:
        """(coef, intercept) of the models of z in the last axis of f."""
        if not self.intercept:
            return f / self.bound, np.zeros(f.shape[:-1])
        return f[..., :-1] * (self.share / self.bound), f[..., -1] * self.constant

    def _shrink(self, X: Any) -> Array:
        """1 / max(||x||, bound), by a few last digits smaller, so that ||z|| <= 1 in floats too."""
        largest, length = _lengths(X)
        spare = 1.0 + (8 + X.shape[1]) * np.finfo(np.float64).eps
        with np.errstate(over="ignore"):
            long = largest * length > self.bound / spare
        safe = np.where(long, largest, 1.0)
        return np.where(long, 1.0 / (length * spare) / safe, 1.0 / self.bound)


def row_norms(X: Any) -> Array:
    """||x|| of every row; entries up to the largest float are no trouble until their norm is none."""
    largest, length = _lengths(_summed(X))
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(largest * length, np.finfo(np.float64).max))


def _summed(X: Any) -> Any:
    """X with every entry stored once: what a CSR matrix states twice is added up."""
    if not _is_sparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    with np.errstate(over="ignore"):
        X.sum_duplicates()
    X.data = np.nan_to_num(X.data)  # a sum past the largest float
    return X


def _lengths(X: Any) -> tuple[Array, Array]:
    """(max |x_j|, ||x|| / max |x_j|) of every row, so that no square overflows; (0, 1) for a row of zeros."""
    if _is_sparse(X):
        at = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        largest = np.zeros(X.shape[0])
        np.maximum.at(largest, at, np.abs(X.data))
        safe = np.where(largest > 0, largest, 1.0)
        length = np.sqrt(np.bincount(at, np.square(X.data / safe[at]), X.shape[0]))
        return largest, np.maximum(length, 1.0)
    largest = np.abs(X).max(axis=1, initial=0.0)
    safe = np.where(largest > 0, largest, 1.0)
    return largest, np.maximum(np.linalg.norm(X / safe[:, None], axis=1), 1.0)


def _is_sparse(X: Any) -> bool:
    return bool(sparse.issparse(X))


def _beside(X: Any, column: Array) -> Any:
    """(X, column) as CSR."""
    return sparse.hstack([sparse.csr_array(X), sparse.csr_array(column)], format="csr")
