"""Renyi divergence of one release, order q > 1, and its conversion to (epsilon, delta).

Penalty perturbation: noise e with displacement D and bend x, r = q - 1. The Jacobian costs J(q), second order
in x. Primal perturbation and output noise move a released vector and bend nothing: x = 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...core import checks
from ...core.errors import ParameterError
from ...core.types import Array
from .moment import log_moment
from .rounding import floats, up


def _orders() -> Array:
    """1 + r for r from 0.001 to 100,000: steps of 2.5% where budgets usually are, of 6% outside."""
    r = np.concatenate(
        [np.geomspace(1e-3, 0.1, 79)[:-1], np.geomspace(0.1, 1e3, 370)[:-1], np.geomspace(1e3, 1e5, 79)]
    )
    orders = 1 + r
    orders.flags.writeable = False
    return orders


ORDERS: Array = _orders()
"""The default grid: between epsilon about 0.001 and 10,000 its steps cost less than 0.1% of epsilon."""


def excess(q: ArrayLike) -> Array:
    """r = q - 1 > 0"""
    orders = floats(q)
    if not (orders > 1).all():
        raise ParameterError(f"`q` must be above 1; got {np.min(orders):g}.")
    return np.asarray(orders - 1)


# -- penalty perturbation ---------------------------------------------------------------------------


def curl(x: ArrayLike) -> Array:
    """y = x^2 / (1 + x): all that J(q) depends on; r x < 1 is the same as q r y < 1."""
    return up(floats(x) ** 2 / (1 + floats(x)))


def jacobian_renyi(q: ArrayLike, x: ArrayLike) -> Array:
    """J(q) = - log1p(- q r x^2 / (1 + x)) / r while r x < 1, infinite beyond."""
    return curl_renyi(q, curl(x))


def curl_renyi(q: ArrayLike, y: ArrayLike) -> Array:
    """J(q) = - log1p(- q r y) / r while q r y < 1, infinite beyond. Convex in y."""
    r = excess(q)
    loss = up(floats(q) * r * floats(y))
    inside = loss < 1
    log = -np.log1p(-np.where(inside, loss, 0.0))
    return np.where(inside, up(log / r), np.inf)


def renyi_gaussian(q: ArrayLike, D: ArrayLike, sigma: ArrayLike, x: ArrayLike) -> Array:
    """q D^2 / (2 sigma^2) + J(q): noise N(0, sigma^2 I). Infinite where r x >= 1."""
    return up(floats(q) * (floats(D) / floats(sigma)) ** 2 / 2 + jacobian_renyi(q, x))


def psi(R: ArrayLike, q: ArrayLike, D: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """alpha max over the angle of [ r ||S + q Delta|| + ||S|| - q ||S + r Delta|| ], ||S|| = R, ||Delta|| = D

    2 R up to R = r D, then 2 r (q D - R) up to R = (r + 1/2) D, then R - sqrt(R^2 - q r D^2): one peak, at
    r D.
    """
    R, q, D, r = floats(R), floats(q), floats(D), excess(q)
    peak, bend = r * D, (r + 0.5) * D
    root = np.sqrt(np.maximum(R**2 - q * r * D**2, 0.0))
    far = q * r * D**2 / np.where(R + root > 0, R + root, 1.0)
    return floats(alpha) * np.where(peak >= R, 2 * R, np.where(bend >= R, 2 * r * (q * D - R), far))


def pure_renyi(q: ArrayLike, epsilon: ArrayLike) -> Array:
    """ln[ (e^(q eps) + e^(-r eps)) / (1 + e^eps) ] / r: the most that pure epsilon allows; below epsilon.

    The likelihood ratio w lies in [e^-eps, e^eps] with mean 1 and w^q is convex: two points are the worst.
    Written ln cosh((r + 1/2) eps) - ln cosh(eps / 2), and never above epsilon or q epsilon^2 / 2.
    """
    return up(scaled_pure_renyi(q, epsilon) / excess(q))


def scaled_pure_renyi(q: ArrayLike, epsilon: ArrayLike) -> Array:
    """r times `pure_renyi`."""
    r, eps = excess(q), floats(epsilon)
    exact = _log_cosh((r + 0.5) * eps) - _log_cosh(eps / 2)
    exact = exact + 1e-14 * _log_cosh((r + 0.5) * eps)
    return up(np.minimum(exact, r * np.minimum(eps, floats(q) * eps**2 / 2)))


def _log_cosh(z: Array) -> Array:
    """ln cosh z for z >= 0, without loss near 0 or overflow far out."""
    near = np.log1p(2 * np.sinh(np.minimum(z, 1.0) / 2) ** 2)
    return np.asarray(np.where(z < 1, near, z + np.log1p(np.exp(-2 * z)) - np.log(2)))


def renyi_norm(q: ArrayLike, D: ArrayLike, alpha: ArrayLike, d: int, x: ArrayLike, pure: ArrayLike) -> Array:
    """ln E_{R ~ Gamma(d, 1/alpha)} exp psi(R) / r + J(q), never above what `pure` epsilon allows.

    `pure` is the pure epsilon of the same release; where r x >= 1 it alone speaks.
    """
    shift = up(log_moment(q, floats(D) * floats(alpha), checks.whole("d", d, least=1)) / excess(q))
    return np.minimum(up(shift + jacobian_renyi(q, x)), pure_renyi(q, pure))


def joint_norm_renyi(
    q: ArrayLike, D: ArrayLike, alpha: ArrayLike, d: int, x: ArrayLike, K: int, pure: ArrayLike
) -> Array:
    """`renyi_norm` with d -> K d, D -> sqrt(K) D and K J(q): K problems under one norm draw in R^(K d)."""
    K, r = checks.whole("K", K, least=1), excess(q)
    move = np.sqrt(K) * floats(D)
    shift = up(log_moment(q, move * floats(alpha), K * checks.whole("d", d, least=1)) / r)
    return np.minimum(up(shift + K * jacobian_renyi(q, x)), pure_renyi(q, pure))


# -- primal perturbation, output noise --------------------------------------------------------------


def primal_renyi_gaussian(q: ArrayLike, S: ArrayLike, sigma: ArrayLike) -> Array:
    """q S^2 / (2 sigma^2)"""
    return renyi_gaussian(q, S, sigma, 0.0)


def primal_renyi_norm(q: ArrayLike, S: ArrayLike, alpha: ArrayLike, d: int) -> Array:
    """ln E exp psi / r with D -> S, never above what the pure epsilon alpha S allows."""
    return renyi_norm(q, S, alpha, d, 0.0, up(floats(alpha) * floats(S)))


def output_renyi_gaussian(q: ArrayLike, gap: ArrayLike, sigma_out: ArrayLike) -> Array:
    """q (2 gap)^2 / (2 sigma_out^2): added by Gaussian output noise."""
    return renyi_gaussian(q, 2 * floats(gap), sigma_out, 0.0)


def output_renyi_norm(q: ArrayLike, gap: ArrayLike, alpha_out: ArrayLike, d: int) -> Array:
    """ln E exp psi / r with D -> 2 gap: added by norm output noise."""
    return primal_renyi_norm(q, 2 * floats(gap), alpha_out, d)


# -- (epsilon, delta) -------------------------------------------------------------------------------


def to_epsilon(orders: ArrayLike, rdp: ArrayLike, delta: float) -> tuple[Array, Array]:
    """epsilon = min over q of RDP + ln(1 - 1/q) - ln(delta q) / (q - 1), never below 0, and its q

    `rdp` has the orders along its last axis. Where every order is infinite: (inf, nan).
    """
    delta = checks.probability("delta", delta)
    q, r, cost = floats(orders), excess(orders), floats(rdp)
    first, second = np.log1p(-1 / q), -(np.log(delta) + np.log(q)) / r
    epsilon = cost + first + second + 1e-14 * (np.abs(first) + np.abs(second))
    best = np.argmin(epsilon, axis=-1)
    least = np.take_along_axis(epsilon, best[..., None], axis=-1)[..., 0]
    return up(np.maximum(least, 0.0)), np.where(np.isfinite(least), q[best], np.nan)
