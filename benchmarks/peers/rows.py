"""Adult for everybody: the training rows dealt evenly to five sites, in files that any peer can read."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.utility.tasks import Array, Task, load

SITES, DEAL = 5, 0
REGULARIZATION = 1e-6  # of the mean loss: as good as none, and the optimum is one point


@cache
def adult() -> Task:
    """The table, read once."""
    return load("adult")


def write_rows(folder: Path) -> list[Path]:
    """site-0.npz ... site-4.npz with X (a constant among its columns, norm at most 1) and y (-1, +1)."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"site-{i}.npz" for i in range(SITES)]
    if not all(path.exists() for path in paths):
        for path, (X, y) in zip(paths, adult().hands(SITES, DEAL), strict=True):
            np.savez(path, X=X, y=y)
    return paths


def read_model(path: Path) -> Array:
    """The vector that an adapter left."""
    return np.asarray(json.loads(path.read_text(encoding="utf-8")), dtype=float).reshape(-1)


def scores(f: Array) -> dict[str, float]:
    """Mean logistic loss and accuracy on Adult's test rows."""
    loss, accuracy = adult().score(f)
    return {"loss": loss, "accuracy": accuracy}
