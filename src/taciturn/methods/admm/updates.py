"""The equations of [ZKL18], on arrays (repeats, d) for one site or (sites, repeats, d) for several sites.

f is a site's vector, lam its dual variable, eta the penalty, theta the dual step and V the number of
neighbours. `heard` is the sum of f_j(t) over the neighbours j. In the updates, every f is a RELEASED value,
as other sites saw it: with noise, clipped and rounded. To continue with the value before noise would nearly
double the privacy cost. For several sites, eta, theta and V are arrays of shape (sites, 1, 1). Each site gets
the same bits as if it were computed alone.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import ParameterError
from ...core.types import Array

Steps = NDArray[np.int64]

Number = TypeVar("Number", float, Array)


def curvature(eta: Number, V: Any) -> Number:
    """2 eta V: the strong convexity that the penalty adds to the site's objective."""
    return cast(Number, 2.0 * eta * V)


def linear_term(f: Array, heard: Array, lam: Array, *, eta: Any, V: Any, noise: Array | None = None) -> Array:
    """b = eta sum_j (f_i + f_j) - 2 lam - 2 eta V e, so that f(t+1) = argmin O(f) + eta V ||f||^2 - <b, f>.

    This is [ZKL18, (10)] without noise and [ZKL18, Algorithm 1] with noise e, after expanding the squares and
    dropping the terms without f.
    """
    b: Array = eta * (V * f + heard) - 2.0 * lam
    if noise is not None:
        b -= curvature(eta, V) * noise
    return b


def dual_update(lam: Array, f: Array, heard: Array, *, theta: Any, V: Any) -> Array:
    """lam(t+1) = lam(t) + (theta / 2) sum_j (f_i(t+1) - f_j(t+1))    [ZKL18, (11)]"""
    return np.asarray(lam + 0.5 * theta * (V * f - heard))


def to_steps(f: Array, noise: Steps, *, grid: float, clip: float) -> Array:
    """(rint(f / grid) + noise) grid; f and the result are clipped. Floats represent the result exactly."""
    most = int(clip / grid)
    steps = np.rint(np.clip(f, -clip, clip) / grid).astype(np.int64) + noise
    return np.asarray(np.clip(steps, -most, most) * grid)


def to_grid(f: Array, *, grid: float | None, clip: float | None) -> Array:
    """f as it leaves the site: clipped to [-clip, clip] and rounded to whole multiples of `grid`."""
    if clip is not None:
        f = np.clip(f, -clip, clip)
    if grid is not None:
        f = np.rint(f / grid) * grid + 0.0  # + 0.0 turns -0.0 into 0.0: the sign bit must not leak
    return f


def network_average(released: Array, weights: ArrayLike | None = None) -> Array:
    """sum_i w_i f_i / sum_i w_i: (..., sites, d) -> (..., d); equal weights by default.

    An average of released vectors costs no privacy (post-processing). An average that includes a vector that
    was not released would reveal more. Without weights, the vectors are added in the order of the sites and
    not by a matrix product, so that every machine gets the same bits.
    """
    if weights is None:
        return np.asarray(released.mean(axis=-2))
    w, sites = np.asarray(weights, dtype=np.float64), released.shape[-2]
    if w.shape != (sites,) or not np.all(np.isfinite(w) & (w >= 0)) or w.sum() <= 0:
        raise ParameterError(f"`weights` must be {sites} numbers of at least 0, not all 0.")
    return np.asarray(np.tensordot(released, w / w.sum(), axes=([-2], [0])))
