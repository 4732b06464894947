"""What one release costs: every bound, on plain numbers that broadcast over (sites, rounds).

For one site and one round, with C the weight of the loss, B its samples, V its neighbours:

    k = C / (2 eta V B)                weight of one sample in the noise equation
    a = 1 + strong / (2 eta V)         least eigenvalue of H; strong = rho/N, 0 if anything is unregularised
    D = 2 k s1 X                       how far the noise moves when one sample is replaced, ||x|| <= X
    x = c1 k X^2 / a                   how much one sample can bend the noise map

with s1 = sup |L'| and c1 = sup L''. One record replaced, at one site, whatever the history: docs/privacy.md.
Every result is rounded to the safe side: an upper bound stays one in floats.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import checks
from ...core.types import Array
from .renyi import (
    ORDERS,
    jacobian_renyi,
    joint_norm_renyi,
    output_renyi_gaussian,
    output_renyi_norm,
    primal_renyi_gaussian,
    primal_renyi_norm,
    psi,
    pure_renyi,
    renyi_gaussian,
    renyi_norm,
    to_epsilon,
)
from .rounding import down, floats, up
from .totals import renyi_gaussian_total, renyi_norm_total

__all__ = [
    "ORDERS",
    "bend",
    "compose",
    "displacement",
    "jacobian_renyi",
    "joint_norm_pure",
    "joint_norm_renyi",
    "least_eigenvalue",
    "one_vs_rest",
    "output_pure",
    "output_renyi_gaussian",
    "output_renyi_norm",
    "paper_condition",
    "paper_epsilon",
    "primal_pure",
    "primal_renyi_gaussian",
    "primal_renyi_norm",
    "primal_sensitivity",
    "psi",
    "pure_log_cosh",
    "pure_logistic",
    "pure_norm",
    "pure_renyi",
    "renyi_gaussian",
    "renyi_gaussian_total",
    "renyi_norm",
    "renyi_norm_total",
    "sample_weight",
    "to_epsilon",
]

# -- symbols ----------------------------------------------------------------------------------------


def sample_weight(C: ArrayLike, eta: ArrayLike, V: ArrayLike, B: ArrayLike) -> Array:
    """k = C / (2 eta V B)"""
    return up(floats(C) / (2 * floats(eta) * floats(V) * floats(B)))


def least_eigenvalue(strong: ArrayLike, eta: ArrayLike, V: ArrayLike) -> Array:
    """a = 1 + strong / (2 eta V), with strong = rho/N, or 0 if any coordinate is not regularised."""
    return np.maximum(down(1 + floats(strong) / (2 * floats(eta) * floats(V))), 1.0)


def displacement(k: ArrayLike, s1: ArrayLike, X: ArrayLike = 1.0) -> Array:
    """D = 2 k s1 X: how far the noise moves when one sample is replaced."""
    return up(2 * floats(k) * floats(s1) * floats(X))


def bend(k: ArrayLike, a: ArrayLike, c1: ArrayLike, X: ArrayLike = 1.0) -> Array:
    """x = c1 k X^2 / a: how much one sample can bend the noise map."""
    return up(floats(c1) * floats(k) * floats(X) ** 2 / floats(a))


# -- penalty perturbation with norm noise, pure epsilon per round -----------------------------------


def paper_epsilon(
    C: ArrayLike, eta: ArrayLike, V: ArrayLike, B: ArrayLike, c1: ArrayLike, alpha: ArrayLike
) -> Array:
    """C (1.4 c1 + alpha) / (eta V B), where `paper_condition` holds and theta <= eta [ZKL18, Thm 3]."""
    return up(floats(C) * (1.4 * floats(c1) + floats(alpha)) / (floats(eta) * floats(V) * floats(B)))


def paper_condition(
    C: ArrayLike, B: ArrayLike, V: ArrayLike, strong: ArrayLike, theta: ArrayLike, c1: ArrayLike
) -> NDArray[np.bool_]:
    """2 c1 < (B/C) (strong + 2 theta V): what `paper_epsilon` needs, with theta <= eta [ZKL18, Alg 1]."""
    room = floats(B) / floats(C) * (floats(strong) + 2 * floats(theta) * floats(V))
    return np.asarray(up(2 * floats(c1)) < room)


def pure_norm(
    k: ArrayLike, a: ArrayLike, alpha: ArrayLike, s1: ArrayLike, c1: ArrayLike, X: ArrayLike = 1.0
) -> Array:
    """alpha D + ln(1 + x): any loss with |L'| <= s1 and 0 <= L'' <= c1; no condition on theta."""
    return up(floats(alpha) * displacement(k, s1, X) + np.log1p(bend(k, a, c1, X)))


def pure_logistic(k: ArrayLike, a: ArrayLike, alpha: ArrayLike, X: ArrayLike = 1.0) -> Array:
    """A + max over p in [0, 1] of [A p + ln(1 + w p (1-p))], A = k alpha X, w = k X^2 / a.

    |L'| = p and L'' = p (1-p) at the same p, so the two worst cases exclude each other. The bracket is
    concave; its slope vanishes at p = 1/2 + b / (2 (2 + sqrt(4 + A b))), b = A + 4 A/w, and the maximum
    is at p = 1, worth 2 A in all, exactly where alpha a >= X.
    """
    A, w = floats(k) * floats(alpha) * floats(X), floats(k) * floats(X) ** 2 / floats(a)
    b = A + 4 * floats(alpha) * floats(a) / floats(X)
    p = np.minimum(0.5 + b / (2 * (2 + np.sqrt(4 + A * b))), 1.0)
    return up(A + A * p + np.log1p(w * p * (1 - p)))


def pure_log_cosh(k: ArrayLike, a: ArrayLike, alpha: ArrayLike, c1: ArrayLike, X: ArrayLike = 1.0) -> Array:
    """A + max over p in [0, 1] of [A p + ln(1 + w (1 - p^2))], A = k alpha X, w = k c1 X^2 / a.

    |L'| = p and L'' = c1 (1 - p^2) at the same p. The bracket is concave; its slope vanishes at
    p = b / (1 + sqrt(1 + A b)), b = A + A/w, and the maximum is at p = 1, worth 2 A, where alpha a >= 2 c1 X.
    """
    A, w = floats(k) * floats(alpha) * floats(X), bend(k, a, c1, X)
    b = A + floats(alpha) * floats(a) / (floats(c1) * floats(X))
    p = np.minimum(b / (1 + np.sqrt(1 + A * b)), 1.0)
    return up(A + A * p + np.log1p(w * (1 - p) * (1 + p)))


# -- primal perturbation, output noise --------------------------------------------------------------


def primal_sensitivity(
    k: ArrayLike, a: ArrayLike, s1: ArrayLike, gap: ArrayLike = 0.0, X: ArrayLike = 1.0
) -> Array:
    """S = D/a + 2 gap: how far the solved vector moves; gap = g/m bounds its distance from the minimiser."""
    return up(displacement(k, s1, X) / floats(a) + 2 * floats(gap))


def primal_pure(S: ArrayLike, alpha: ArrayLike) -> Array:
    """alpha S: primal perturbation with norm noise; the site itself must go on from the released value."""
    return up(floats(alpha) * floats(S))


def output_pure(gap: ArrayLike, alpha_out: ArrayLike) -> Array:
    """2 gap alpha_out: what norm output noise adds when each solve ends within gap of its minimiser."""
    return up(2 * floats(gap) * floats(alpha_out))


# -- one-vs-rest, rounds ----------------------------------------------------------------------------


def one_vs_rest(cost: ArrayLike, K: int) -> Array:
    """K cost: K binary problems on the same records with independent noise. Pure or Renyi; tight."""
    return up(checks.whole("K", K, least=1) * floats(cost))


def joint_norm_pure(
    k: ArrayLike,
    a: ArrayLike,
    alpha: ArrayLike,
    s1: ArrayLike,
    c1: ArrayLike,
    K: int,
    X: ArrayLike = 1.0,
) -> Array:
    """alpha sqrt(K) D + K ln(1 + x): K problems under one norm draw in R^(K d)."""
    K = checks.whole("K", K, least=1)
    move = np.sqrt(K) * displacement(k, s1, X)
    return up(floats(alpha) * move + K * np.log1p(bend(k, a, c1, X)))


def compose(costs: ArrayLike, axis: int = -1) -> Array:
    """The sum over rounds: pure epsilons add, and so do Renyi divergences of one order."""
    return up(np.sum(floats(costs), axis=axis))
