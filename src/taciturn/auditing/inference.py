"""The inference attack of [ZKL18, appendix E]: one unknown record, out of the KKT conditions of all rounds.

The observer knows every record of a site but one, every broadcast, and theta. With u = 1/(2 eta V) the
optimality of round t says

    e(t) - u (C/B) p(t) v = u A(t) + B(t),     v = y x of the unknown record, p = |L'| at it
    A = -2 lam - grad O(f) over the known records,     B = (V f(t-1) + heard(t-1)) / (2 V) - f(t)

The right side can be computed, but for u where eta is secret. The noise averages out; v stays, up to scale.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..core.types import Array

_DECADES, _POINTS, _ZOOMS = 8.0, 41, 5


def residual(u: ArrayLike, A: Array, B: Array) -> Array:
    """u A + B, with u broadcast over the last axis."""
    return np.asarray(np.asarray(u)[..., None] * A + B)


def direction(residuals: Array, weights: Array) -> Array:
    """The unit vector along -sum over the rounds (first axis) of weight times residual; (rounds, ..., d).

    The best weights are u / var(e).
    """
    total = -np.sum(weights[..., None] * residuals, axis=0)
    length = np.linalg.norm(total, axis=-1, keepdims=True)
    return np.asarray(total / np.where(length > 0, length, 1.0))


def cosine(a: Array, b: Array) -> Array:
    """cos of the angle between vectors along the last axis; 0 for a zero vector."""
    size = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.asarray(np.sum(a * b, axis=-1) / np.where(size > 0, size, 1.0))


def estimate_u(
    A: Array, B: Array, curvature: Array, *, noise: str, scale: ArrayLike, centre: ArrayLike
) -> Array:
    """The likeliest u = 1/(2 eta V) of each round: one unknown against d equations.

    Maximises ln p_noise(u A + B) + sum ln(1 + u m), m the eigenvalues of O'' at the known records, (..., d),
    which is the Jacobian, without which u comes out too small. `scale` is the noise's, and not used for noise
    "none", where the smallest residual is the likeliest. Searched over 8 decades around `centre`.
    """
    AA, AB, BB = (np.sum(x * y, axis=-1) for x, y in ((A, A), (A, B), (B, B)))
    if noise == "none":
        return np.asarray(np.maximum(-AB / np.where(AA > 0, AA, 1.0), 1e-300))
    scale = np.asarray(scale, dtype=np.float64)

    def log_likelihood(u: Array) -> Array:
        square = np.maximum(u**2 * AA + 2 * u * AB + BB, 0.0)
        fit = -square / (2 * scale**2) if noise == "gaussian" else -scale * np.sqrt(square)
        return np.asarray(fit + np.sum(np.log1p(u[..., None] * curvature), axis=-1))

    best = np.log(np.broadcast_to(np.asarray(centre, dtype=np.float64), AA.shape)).copy()
    width = _DECADES / 2 * np.log(10.0)
    for _ in range(_ZOOMS):
        steps = np.linspace(-width, width, _POINTS)
        values = np.stack([log_likelihood(np.exp(best + step)) for step in steps])
        best = best + steps[np.argmax(values, axis=0)]
        width = 2 * width / (_POINTS - 1)
    return np.exp(best)


def geometric_fit(u: Array) -> Array:
    """u smoothed to u(1) ratio^(t-1), by least squares on ln u over the rounds (first axis)."""
    T = u.shape[0]
    y = np.log(u).reshape(T, -1)
    t = np.arange(T) - (T - 1) / 2
    slope = t @ y / max(float(t @ t), 1.0)
    return np.asarray(np.exp(y.mean(axis=0) + np.outer(t, slope)).reshape(u.shape))


def chance_cosine(d: int) -> float:
    """E|cos| between a fixed and a uniformly random direction in R^d: about sqrt(2 / (pi d)).

    >>> round(chance_cosine(1), 6), round(chance_cosine(2) * np.pi, 6)
    (1.0, 2.0)
    """
    return float(np.exp(special.gammaln(d / 2) - special.gammaln((d + 1) / 2)) / np.sqrt(np.pi))
