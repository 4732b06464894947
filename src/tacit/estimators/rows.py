"""Rows inside the unit ball: (x, 1) clipped and scaled by public numbers, so that the proof holds for every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ball:
    """x with ||x|| <= bound  ->  z = (x / bound, 1) / sqrt(2), so ||z|| <= 1; without intercept z = x / bound.

    A longer x is first clipped to the bound. The intercept is an entry of the same clipped and regularised vector.
    A model f of z is a model of x: f.z = coef.x + intercept.
    """

    bound: float
    intercept: bool

    @property
    def _share(self) -> float:
        return float(np.sqrt(0.5)) if self.intercept else 1.0

    def rows(self, X: Any) -> Any:
        """z for every row of X, dense or CSR."""
        factors = self._share / np.maximum(row_norms(X), self.bound)
        if sparse.issparse(X):
            scaled: Any = sparse.csr_array(X, dtype=np.float64).multiply(factors[:, None]).tocsr()
            return sparse.hstack([scaled, self._ones(X.shape[0])], format="csr") if self.intercept else scaled
        scaled = X * factors[:, None]
        return np.hstack([scaled, self._ones(len(X))]) if self.intercept else scaled

    def model(self, f: Array) -> tuple[Array, Array]:
        """(coef, intercept) of the models of z in the last axis of f."""
        if not self.intercept:
            return f / self.bound, np.zeros(f.shape[:-1])
        return f[..., :-1] * (self._share / self.bound), f[..., -1] * self._share

    def _ones(self, rows: int) -> Array:
        return np.full((rows, 1), self._share)


def row_norms(X: Any) -> Array:
    """||x|| of every row, without overflow for entries up to the largest float."""
    if sparse.issparse(X):
        csr: Any = sparse.csr_array(X, dtype=np.float64)
        rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
        largest = np.zeros(csr.shape[0])
        np.maximum.at(largest, rows, np.abs(csr.data))
        safe = np.where(largest > 0, largest, 1.0)
        squares = np.bincount(rows, np.square(csr.data / safe[rows]), csr.shape[0])
        return np.asarray(safe * np.sqrt(squares))
    largest = np.abs(X).max(axis=1, initial=0.0)
    safe = np.where(largest > 0, largest, 1.0)
    return np.asarray(safe * np.linalg.norm(X / safe[:, None], axis=1))
