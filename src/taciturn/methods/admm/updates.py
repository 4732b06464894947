"""The paper's equations for one site, on arrays of shape (repeats, d); or for many, (sites, repeats, d).

`heard` is the sum of f_j(t) over the neighbours j, V their number. Every f here is a RELEASED value: noised,
clipped and rounded as the network saw it. Going on with the clean value would nearly double the cost.
For many sites eta, theta and V are arrays of shape (sites, 1, 1), and the bits those of each alone.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ...core.types import Array

Steps = NDArray[np.int64]

Number = TypeVar("Number", float, Array)


def curvature(eta: Number, V: Any) -> Number:
    """2 eta V: the strong convexity that the penalty adds to the site's objective."""
    return cast(Number, 2.0 * eta * V)


def linear_term(f: Array, heard: Array, lam: Array, *, eta: Any, V: Any, noise: Array | None = None) -> Array:
    """b = eta sum_j (f_i + f_j) - 2 lam - 2 eta V e, so that f(t+1) = argmin O(f) + eta V ||f||^2 - <b, f>.

    [ZKL18, (10)] without noise, [ZKL18, Algorithm 1] with it: expand the squares, keep what holds f.
    """
    b: Array = eta * (V * f + heard) - 2.0 * lam
    if noise is not None:
        b -= curvature(eta, V) * noise
    return b


def dual_update(lam: Array, f: Array, heard: Array, *, theta: Any, V: Any) -> Array:
    """lam(t+1) = lam(t) + (theta / 2) sum_j (f_i(t+1) - f_j(t+1))    [ZKL18, (11)]"""
    return np.asarray(lam + 0.5 * theta * (V * f - heard))


def to_steps(f: Array, noise: Steps, *, grid: float, clip: float) -> Array:
    """(rint(f / grid) + noise) grid, clipped before and after: whole numbers of steps, exact in floats."""
    most = int(clip / grid)
    steps = np.rint(np.clip(f, -clip, clip) / grid).astype(np.int64) + noise
    return np.asarray(np.clip(steps, -most, most) * grid)


def to_grid(f: Array, *, grid: float | None, clip: float | None) -> Array:
    """f, clipped to [-clip, clip] and rounded to whole multiples of `grid`: what leaves the site."""
    if clip is not None:
        f = np.clip(f, -clip, clip)
    if grid is not None:
        f = np.rint(f / grid) * grid + 0.0  # + 0.0 turns -0.0 into 0.0: a sign is a bit too
    return f
