"""Gaussian differential privacy (GDP): mu, and the exact (epsilon, delta) that follow from mu.

A release is mu-GDP if telling two neighbouring data sets apart is no easier than telling N(0, 1) from
N(mu, 1). Over rounds the squares of mu add up. This holds even if each mu(t) depends on earlier releases, as
long as the sum of squares stays below a bound that was fixed before the run. The curve of a mu-GDP release is

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)

and this conversion is exact: docs/privacy.md. Every result is rounded to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ...core import checks
from ...core.errors import ParameterError
from ...core.formatting import format_given
from ...core.types import Array
from .rounding import floats, up

_STEPS = 70  # the largest number of bisection steps: enough to find the last bit of a float
_MANTISSA = 50  # the smallest number of bisection steps after which the last bit may be found
_FAR = 8.0  # for y below -_FAR, Phi(-y) is replaced by 1, which is too large by less than 1e-15
_NARROW = 15.0  # up to this mu, y = epsilon/mu - mu/2 never falls to -_FAR
_ROOT_2, _ROOT_2_PI, _HALF_ROOT = math.sqrt(2), math.sqrt(2 * math.pi), math.sqrt(math.pi / 2)
_MILLS = 4e-15  # a bound on the relative error of a computed Mills ratio Phi(-y) / phi(y)
_ULPS = 1e-15  # a bound on the rounding error of y, relative to epsilon/mu + mu
_HOPELESS = 1e8  # from this mu on, epsilon counts as infinite
_LARGEST = float(np.finfo(float).max)
_LOOSE = 1e-12  # a bound on the relative error of a computed density with an exponent up to 1,000


def compose_mu(mu: ArrayLike, axis: int = -1) -> Array:
    """sqrt(sum mu^2): mu of several rounds, or of several releases in one round, together."""
    values = floats(mu)
    largest = np.max(values, axis=axis, keepdims=True, initial=0.0)
    usable = np.isfinite(largest) & (largest > 0)
    scale = np.where(usable, largest, 1.0)  # without scaling, squares could under- or overflow
    root = np.sqrt(np.sum((values / scale) ** 2, axis=axis))
    return up(np.squeeze(scale, axis=axis) * root)


def gaussian_delta(mu: ArrayLike, epsilon: ArrayLike) -> Array:
    """delta(epsilon) of a mu-GDP release, rounded up.

    delta(epsilon) = phi(y) (m(y) - m(y + mu)) with y = epsilon/mu - mu/2 and m(y) = Phi(-y) / phi(y).
    """
    mu, epsilon = np.broadcast_arrays(floats(mu), floats(epsilon))
    inside = (mu > 0) & np.isfinite(mu)
    with np.errstate(over="ignore", under="ignore"):
        curve = _curve(np.where(inside, mu, 1.0), epsilon)
    return np.asarray(np.where(inside, curve, np.where(mu > 0, 1.0, 0.0)))


def _curve(mu: Array, epsilon: Array, wide: bool = True) -> Array:
    """`gaussian_delta` for finite mu above 0, without checks. `wide` must be True if a mu exceeds 15."""
    ratio = epsilon / mu
    slip = _ULPS * (ratio + mu)  # a bound on the rounding error of y
    y = ratio - mu / 2 - slip
    near = np.maximum(y, -_FAR)
    first, second = _mills(near), _mills(near + mu)
    density = np.exp(np.minimum(near, 1e6) ** 2 * -0.5) / _ROOT_2_PI
    curve = density * (first - second + _MILLS * (first + second))
    if wide:
        far = 1 - np.exp(np.minimum(epsilon, 700.0)) * special.ndtr(-y - 2 * slip - mu) * (1 - _LOOSE)
        curve = np.where(y < -_FAR, far, curve)
    return np.asarray(np.minimum(np.maximum(curve * (1 + _LOOSE), 0.0), 1.0))


def gaussian_epsilon(mu: ArrayLike, delta: ArrayLike) -> Array:
    """The least epsilon with delta(epsilon) <= delta, rounded up; inf for mu from 1e8 on."""
    mu, delta = np.broadcast_arrays(floats(mu), _probabilities(delta))
    inside = (mu > 0) & (mu < _HOPELESS)
    safe = np.where(inside, mu, 1.0)
    high = safe * (safe / 2 + np.sqrt(-2 * np.log(delta))) * (1 + 1e-9) + 1e-300

    wide = bool(np.any(safe > _NARROW))

    def within(epsilon: Array) -> NDArray[np.bool_]:
        return np.asarray(_curve(safe, epsilon, wide) <= delta)

    with np.errstate(over="ignore", under="ignore"):
        while not np.all(ok := within(high)):
            high = np.where(ok, high, 1.5 * high)
        low = np.zeros_like(safe)
        found = np.where(within(low), 0.0, _halve(within, low, high)[1])
    return np.asarray(np.where(inside, found, np.where(mu < _HOPELESS, 0.0, np.inf)))


def gaussian_mu(epsilon: ArrayLike, delta: ArrayLike) -> Array:
    """The largest mu whose curve stays within (epsilon, delta), rounded down."""
    epsilon, delta = np.broadcast_arrays(floats(epsilon), _probabilities(delta))
    if not (epsilon >= 0).all():
        raise ParameterError(f"`epsilon` must be at least 0; got {format_given(np.min(epsilon))}.")

    def beyond(mu: Array) -> NDArray[np.bool_]:
        return np.asarray(gaussian_delta(mu, epsilon) > delta)

    low = np.zeros_like(epsilon)
    high = np.sqrt(2 * np.minimum(epsilon, _LARGEST / 2)) + 8 * delta + 1.0
    while not np.all(out := beyond(high)):
        high = np.where(out, high, 2 * high)
    if not np.isfinite(high).all():
        return _halve(beyond, low, high)[0]
    wide = bool(np.any(high > _NARROW))
    with np.errstate(over="ignore", under="ignore"):
        return _halve(lambda mu: np.asarray(_curve(mu, epsilon, wide) > delta), low, high)[0]


def _halve(above: Callable[[Array], NDArray[np.bool_]], low: Array, high: Array) -> tuple[Array, Array]:
    """Two neighbouring floats, found by bisection: `above` is false at the first and true at the second."""
    for step in range(_STEPS):
        middle = (low + high) / 2
        if step > _MANTISSA and np.all((middle == low) | (middle == high)):
            break  # neighbouring floats: further steps change nothing
        ok = above(middle)
        if ok.ndim == 0:
            low, high = (low, middle) if ok else (middle, high)
        else:
            low, high = np.where(ok, low, middle), np.where(ok, middle, high)
    return np.asarray(low), np.asarray(high)


def _mills(y: Array) -> Array:
    """Phi(-y) / phi(y)"""
    return np.asarray(_HALF_ROOT * special.erfcx(y / _ROOT_2))


def _probabilities(delta: ArrayLike) -> Array:
    values = floats(delta)
    for value in np.unique(values):
        checks.probability("delta", value)
    return values
