"""Made-up tables of very different kinds. They test the default rule, which was not tuned on them."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from .tasks import Array, Task

_TEST = 20_000

KINDS = {
    "dense, d = 3": (20_000, 3),
    "dense, d = 40, correlated": (20_000, 40),
    "dense, d = 200": (40_000, 200),
    "heavy tails, d = 60": (20_000, 60),
    "sparse, d = 300, 3% positive": (40_000, 300),
    "imbalanced, d = 30, 2% positive": (30_000, 30),
    "tiny, n = 200, d = 5": (200, 5),
    "small, n = 2,000, d = 20": (2_000, 20),
    "sparse, d = 1,000": (40_000, 1_000),
}
"""The number of rows and columns of each kind."""


def make(kind: str) -> Task:
    """The table of that kind: rows of norm at most 1, labels drawn from a logistic model."""
    rows, d = KINDS[kind]
    draw = np.random.default_rng(sorted(KINDS).index(kind) + 100)
    X = _rows(kind, draw, rows + _TEST, d)
    weights = draw.standard_normal(d) * (draw.random(d) < max(0.3, 3 / d))
    margins = X @ weights
    margins *= 1.5 / margins.std()
    share = 0.03 if "3% positive" in kind else 0.02 if "2% positive" in kind else 0.4
    shift = _shift(margins, share)
    y = np.where(draw.random(len(X)) < expit(margins + shift), 1.0, -1.0)
    return Task(kind, X[:rows], y[:rows], X[rows:], y[rows:])


def _rows(kind: str, draw: np.random.Generator, count: int, d: int) -> Array:
    if kind.startswith("sparse"):
        frequent = np.clip(draw.pareto(1.0, d) * 0.01, 0.002, 0.5)
        X = (draw.random((count, d)) < frequent).astype(np.float64)
        return X / np.sqrt(np.maximum(X.sum(axis=1, keepdims=True), 4.0))
    if kind.startswith("heavy"):
        X = draw.standard_t(2.5, (count, d))
    elif "correlated" in kind:
        X = draw.standard_normal((count, 4)) @ draw.standard_normal((4, d))
        X = X + 0.5 * draw.standard_normal((count, d))
    else:
        X = draw.standard_normal((count, d)) * draw.uniform(0.3, 1.0, d)
    X /= np.median(np.linalg.norm(X, axis=1)) * 1.5
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0))


def _shift(margins: Array, share: float) -> float:
    """The number to add to the margins so that this share of the labels is positive."""
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(margins + middle).mean() < share else (low, middle)
    return high
