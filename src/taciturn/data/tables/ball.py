"""Rows inside the unit ball: x and a constant, clipped and scaled by public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...types import Array
from .clipping import is_sparse, merge_entries, shrink_factors


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
        X = merge_entries(X)
        factors = self.share * shrink_factors(X, self.bound)
        ones = np.full((X.shape[0], 1), self.constant)
        if keep is not None:
            factors, ones = np.where(keep, factors, 0.0), np.where(keep[:, None], ones, 0.0)
        if is_sparse(X):
            scaled = X.multiply(factors[:, None]).tocsr()
            return _beside(scaled, ones) if self.intercept else scaled
        scaled = X * factors[:, None]
        return np.hstack([scaled, ones]) if self.intercept else scaled

    def model(self, f: Array) -> tuple[Array, Array]:
        """(coef, intercept) of the models of z in the last axis of f."""
        if not self.intercept:
            return f / self.bound, np.zeros(f.shape[:-1])
        return f[..., :-1] * (self.share / self.bound), f[..., -1] * self.constant


def _beside(X: Any, column: Array) -> Any:
    """(X, column) as CSR."""
    return sparse.hstack([sparse.csr_array(X), sparse.csr_array(column)], format="csr")
