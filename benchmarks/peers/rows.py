"""Adult for all peers: the training rows, split evenly over five sites, in files that every peer can read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from taciturn.data import load_adult
from taciturn.data.tables.dealing import assign_evenly
from taciturn.data.tables.unit_ball import UnitBallScaling

Array = NDArray[np.float64]
SITES, DEAL = 5, 0


@dataclass(frozen=True, eq=False)
class Adult:
    """X for estimators; for all others Z, the same rows with a constant, scaled into the unit ball."""

    X: Array
    Z: Array
    y: Array
    Z_test: Array
    y_test: Array
    ball: UnitBallScaling

    @property
    def dimension(self) -> int:
        return self.Z.shape[1]

    def hands(self, sites: int, seed: int) -> list[tuple[Array, Array]]:
        """The training rows, distributed evenly."""
        site = assign_evenly(len(self.y), sites, seed=seed)
        return [(self.Z[site == i], self.y[site == i]) for i in range(sites)]

    def score(self, f: Array) -> tuple[float, float]:
        """Mean logistic loss and accuracy on Adult's own test rows."""
        margins = self.y_test * (self.Z_test @ np.asarray(f))
        return float(np.logaddexp(0, -margins).mean()), float((margins > 0).mean())


@cache
def adult() -> Adult:
    """The table, read once, scaled by public bounds."""
    data, ball = load_adult(scaling="public"), UnitBallScaling(1.0, intercept=True)
    X, held = data.X[~data.test], data.X[data.test]
    rows, rows_held = np.asarray(ball.rows(X)), np.asarray(ball.rows(held))
    return Adult(X, rows, data.y[~data.test], rows_held, data.y[data.test], ball)


def write_rows(folder: Path) -> list[Path]:
    """site-0.npz ... site-4.npz with X (a constant among its columns, norm at most 1) and y (-1, +1)."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"site-{i}.npz" for i in range(SITES)]
    if not all(path.exists() for path in paths):
        for path, (X, y) in zip(paths, adult().hands(SITES, DEAL), strict=True):
            np.savez(path, X=X, y=y)
    return paths


def read_model(path: Path) -> Array:
    """The model that an adapter wrote."""
    return np.asarray(json.loads(path.read_text(encoding="utf-8")), dtype=float).reshape(-1)


def scores(f: Array) -> dict[str, float]:
    """The test loss and accuracy of a model."""
    loss, accuracy = adult().score(f)
    return {"loss": loss, "accuracy": accuracy}
