"""Scale rows to norm at most 1, and append a constant column for the intercept.

The factor of a row depends on this row and on public numbers alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.types import Array, LazyRows
from .clipping import is_sparse, merge_entries, shrink_factors

_BLOCK = 8192  # rows that are scaled at a time


@dataclass(frozen=True)
class UnitBallScaling:
    """||x|| <= bound  ->  z = (x / bound, c) / sqrt(1 + c^2), ||z|| <= 1; without intercept z = x / bound.

    An x with a larger norm is first clipped to the bound. The constant for the intercept is part of z,
    because the privacy proof needs a bound on the whole row. A model f of z is a model of x: f.z = coef.x +
    intercept. A smaller c leaves more of the norm to x, and makes the regulariser keep the intercept closer
    to 0.
    """

    bound: float
    intercept: bool
    c: float = 0.5

    @property
    def share(self) -> float:
        """The largest norm of the part of z that comes from x."""
        return 1.0 / math.hypot(1.0, self.c) if self.intercept else 1.0

    @property
    def constant(self) -> float:
        """The last entry of z, if there is an intercept."""
        return self.c / math.hypot(1.0, self.c)

    def rows(
        self, X: Any, keep: NDArray[np.bool_] | None = None, chosen: NDArray[np.intp] | None = None
    ) -> Any:
        """z for every row of X (dense, CSR or lazy), or only for the rows with the indices `chosen`.

        A row with `keep` = False is all zeros, including the constant.
        """
        if isinstance(X, LazyRows):
            return ScaledRows(X, self, keep, chosen)
        X = merge_entries(X)
        if is_sparse(X):
            X = X if chosen is None else X[chosen]
            keep = keep if keep is None or chosen is None else keep[chosen]
            scaled = X.multiply(self.factors(X, keep)[:, None]).tocsr()
            ones = self.constants(X.shape[0], keep)
            beside = [sparse.csr_array(scaled), sparse.csr_array(ones[:, None])]
            return sparse.hstack(beside, format="csr") if self.intercept else scaled
        numbers = np.arange(X.shape[0]) if chosen is None else chosen
        rows = np.empty((len(numbers), X.shape[1] + self.intercept))
        for start in range(0, len(numbers), _BLOCK):  # in blocks, because X[some] is a copy
            some = numbers[start : start + _BLOCK]
            part, kept = X[some], None if keep is None else keep[some]
            factors = self.factors(part, kept)
            np.multiply(part, factors[:, None], out=rows[start : start + len(some), : X.shape[1]])
            if self.intercept:
                rows[start : start + len(some), -1] = self.constants(len(some), kept)
        return rows

    def factors(self, X: Any, keep: NDArray[np.bool_] | None) -> Array:
        """The factor by which each row is multiplied; 0 if `keep` is False."""
        factors = self.share * shrink_factors(X, self.bound)
        return factors if keep is None else np.where(keep, factors, 0.0)

    def constants(self, rows: int, keep: NDArray[np.bool_] | None) -> Array:
        """The last entry of each row z: the constant; 0 if `keep` is False."""
        ones = np.full(rows, self.constant)
        return ones if keep is None else np.where(keep, ones, 0.0)

    def model(self, f: Array) -> tuple[Array, Array]:
        """(coef, intercept) of models of x, from models f of z; a model is the last axis of f."""
        if not self.intercept:
            return f / self.bound, np.zeros(f.shape[:-1])
        return f[..., :-1] * (self.share / self.bound), f[..., -1] * self.constant


class ScaledRows(LazyRows):
    """z for the chosen rows of X, computed when it is needed. The factor of each row is stored."""

    def __init__(
        self,
        X: LazyRows,
        ball: UnitBallScaling,
        keep: NDArray[np.bool_] | None,
        chosen: NDArray[np.intp] | None,
    ) -> None:
        self.X, self.ball, self.keep, self.chosen = X, ball, keep, chosen
        self.shape = len(X) if chosen is None else len(chosen), X.shape[1] + ball.intercept
        self._known = np.full(self.shape[0], np.nan)

    def take(self, chosen: Any) -> Array:
        numbers = chosen if self.chosen is None else self.chosen[chosen]
        X, keep, factors = self.X.take(numbers), None, self._known[chosen]
        if self.keep is not None:
            keep = self.keep[numbers]
        if np.isnan(factors).any():
            self._known[chosen] = factors = self.ball.factors(X, keep)
        rows = np.empty((len(X), self.shape[1]))
        np.multiply(X, factors[:, None], out=rows[:, : X.shape[1]])
        if self.ball.intercept:
            rows[:, -1] = self.ball.constants(len(X), keep)
        return rows
