"""Compare a whole fit of whitened descent with its bare passes over the rows; measure its memory."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import taciturn as tt

from ..memory import forget_peak, peak, resident


@dataclass(frozen=True)
class FitCost:
    """The seconds of a fit and of its necessary passes, and its memory divided by the size of the rows."""

    rows: int
    columns: int
    seconds: float
    bare: float
    memory: float

    @property
    def ratio(self) -> float:
        """The time of the fit divided by the time of its bare passes."""
        return self.seconds / self.bare


def fit_cost(rows: int = 10**6, columns: int = 50, *, tries: int = 3) -> FitCost:
    """The best of several tries; fit and passes alternate, so that a busy machine slows both."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns)) / np.sqrt(2 * columns)
    y = X @ rng.standard_normal(columns) > 0
    clf = tt.PrivateLogisticRegression(epsilon=1.0, colluding=1, sites=5, classes=[False, True])
    clf.fit(X[: rows // 20], y[: rows // 20])  # compiles
    seconds, bare, memory = [], [], []
    for _ in range(tries):
        forget_peak()
        before, start = resident(), time.perf_counter()
        clf.fit(X, y)
        seconds.append(time.perf_counter() - start)
        memory.append((peak() - before) / X.nbytes)
        bare.append(bare_passes(X, clf.plan_.rounds))
    return FitCost(rows, columns, min(seconds), min(bare), max(memory))


def bare_passes(X: np.ndarray, rounds: int) -> float:
    """Seconds of the products that every run needs: X f and X'g for every gradient, W'X and X'X."""
    f, W = np.ones(X.shape[1]), np.eye(X.shape[1])
    start = time.perf_counter()
    for _ in range(rounds - 3):
        for begin in range(0, len(X), 1024):
            block = X[begin : begin + 1024]
            block.T @ (block @ f)
    for turn in range(3):
        for begin in range(0, len(X), 1024):
            block = X[begin : begin + 1024]
            moved = block @ W if turn else block
            moved.T @ moved
    for begin in range(0, len(X), 1024):
        X[begin : begin + 1024] @ W  # the length of every row
    return time.perf_counter() - start
