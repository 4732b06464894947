"""Rows inside the unit ball: x and a constant, clipped and scaled by public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.types import Array
from .clipping import is_sparse, merge_entries, shrink_factors

_BLOCK = 8192  # rows that are scaled at a time


@dataclass(frozen=True)
class UnitBallScaling:
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
        """The part of the norm that is left for x."""
        return 1.0 / math.hypot(1.0, self.c) if self.intercept else 1.0

    @property
    def constant(self) -> float:
        """The last entry of z."""
        return self.c / math.hypot(1.0, self.c)

    def rows(
        self, X: Any, keep: NDArray[np.bool_] | None = None, chosen: NDArray[np.intp] | None = None
    ) -> Any:
        """z for every row of X, dense or CSR, or for those that are `chosen`.

        Where `keep` is False a row is all zeros, the constant too.
        """
        X = merge_entries(X)
        if is_sparse(X):
            X = X if chosen is None else X[chosen]
            factors, ones = self._factors(X, keep if keep is None or chosen is None else keep[chosen])
            scaled = X.multiply(factors[:, None]).tocsr()
            beside = [sparse.csr_array(scaled), sparse.csr_array(ones[:, None])]
            return sparse.hstack(beside, format="csr") if self.intercept else scaled
        numbers = np.arange(X.shape[0]) if chosen is None else chosen
        rows = np.empty((len(numbers), X.shape[1] + self.intercept))
        for start in range(0, len(numbers), _BLOCK):  # no second copy of all rows is made on the way
            some = numbers[start : start + _BLOCK]
            part = X[some]
            factors, ones = self._factors(part, None if keep is None else keep[some])
            np.multiply(part, factors[:, None], out=rows[start : start + len(some), : X.shape[1]])
            if self.intercept:
                rows[start : start + len(some), -1] = ones
        return rows

    def _factors(self, X: Any, keep: NDArray[np.bool_] | None) -> tuple[Array, Array]:
        """The factor of each row, and its last entry."""
        factors, ones = self.share * shrink_factors(X, self.bound), np.full(X.shape[0], self.constant)
        if keep is None:
            return factors, ones
        return np.where(keep, factors, 0.0), np.where(keep, ones, 0.0)

    def model(self, f: Array) -> tuple[Array, Array]:
        """(coef, intercept) of the models of z in the last axis of f."""
        if not self.intercept:
            return f / self.bound, np.zeros(f.shape[:-1])
        return f[..., :-1] * (self.share / self.bound), f[..., -1] * self.constant
