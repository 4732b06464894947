"""Small problems with known shapes, which many tests share."""

from __future__ import annotations

import numpy as np


def make_sites(n=5, rows=40, d=6, seed=0, spread=0.0):
    """Sites with rows of norm at most 1 and noisy linear labels; `spread` makes them differ."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(d)
    sites = []
    for _ in range(n):
        X = rng.standard_normal((rows, d)) + spread * rng.standard_normal(d)
        X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
        y = np.where(X @ truth + 0.3 * rng.standard_normal(rows) > 0, 1.0, -1.0)
        sites.append((X, y))
    return sites
