"""Bounds on the privacy cost of one release; all arguments are numbers or arrays that broadcast.

For one site and one round, with C the weight of the loss, eta the penalty, theta the dual step, B the site's
number of samples and V its number of neighbours:

    k = C / (2 eta V B)                weight of one sample in the noise map
    a = 1 + strong / (2 eta V)         least eigenvalue of H
    D = 2 k s1 X                       how far the noise moves when one sample is replaced, ||x|| <= X
    x = c1 k X^2 / a                   the bend: how much one sample can change the noise map's Jacobian

with s1 = sup |L'| and c1 = sup L''. For a regularisation of weight rho at N sites, `strong` is rho/N, or 0 if
some coordinate is not regularised. The noise map gives, for each released model f, the only noise that makes
f the minimiser; H is minus the derivative of the noise map. The bounds hold if one sample (record) is
replaced at one site, whatever was released before (proof: docs/privacy.md). Every result is rounded to the
safe side, so that an upper bound is still an upper bound in floating-point arithmetic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import checks
from ...core.errors import ParameterError
from ...core.types import Array
from .rounding import down, floats, up

# -- symbols ----------------------------------------------------------------------------------------


def sample_weight(C: ArrayLike, eta: ArrayLike, V: ArrayLike, B: ArrayLike) -> Array:
    """k = C / (2 eta V B)"""
    return up(floats(C) / (2 * floats(eta) * floats(V) * floats(B)))


def least_eigenvalue(strong: ArrayLike, eta: ArrayLike, V: ArrayLike) -> Array:
    """a = 1 + strong / (2 eta V), with strong = rho/N, or 0 if some coordinate is not regularised."""
    return np.maximum(down(1 + floats(strong) / (2 * floats(eta) * floats(V))), 1.0)


def displacement(k: ArrayLike, s1: ArrayLike, X: ArrayLike = 1.0) -> Array:
    """D = 2 k s1 X: how far the noise moves when one sample is replaced."""
    return up(2 * floats(k) * floats(s1) * floats(X))


def bend(k: ArrayLike, a: ArrayLike, c1: ArrayLike, X: ArrayLike = 1.0) -> Array:
    """x = c1 k X^2 / a: how much one sample can change the Jacobian of the noise map."""
    return up(floats(c1) * floats(k) * floats(X) ** 2 / floats(a))


# -- penalty perturbation with norm noise, pure epsilon per round -----------------------------------


def paper_epsilon(
    C: ArrayLike, eta: ArrayLike, V: ArrayLike, B: ArrayLike, c1: ArrayLike, alpha: ArrayLike
) -> Array:
    """C (1.4 c1 + alpha) / (eta V B); valid if `paper_condition` holds and theta <= eta [ZKL18, Thm 3]."""
    return up(floats(C) * (1.4 * floats(c1) + floats(alpha)) / (floats(eta) * floats(V) * floats(B)))


def paper_condition(
    C: ArrayLike, B: ArrayLike, V: ArrayLike, strong: ArrayLike, theta: ArrayLike, c1: ArrayLike
) -> NDArray[np.bool_]:
    """2 c1 < (B/C) (strong + 2 theta V). `paper_epsilon` needs this and theta <= eta [ZKL18, Alg 1]."""
    room = floats(B) / floats(C) * (floats(strong) + 2 * floats(theta) * floats(V))
    return np.asarray(up(2 * floats(c1)) < room)


def pure_norm(
    k: ArrayLike, a: ArrayLike, alpha: ArrayLike, s1: ArrayLike, c1: ArrayLike, X: ArrayLike = 1.0
) -> Array:
    """alpha D + ln(1 + x), for any loss with |L'| <= s1 and 0 <= L'' <= c1, and for every theta."""
    return up(floats(alpha) * displacement(k, s1, X) + np.log1p(bend(k, a, c1, X)))


def pure_logistic(k: ArrayLike, a: ArrayLike, alpha: ArrayLike, X: ArrayLike = 1.0) -> Array:
    """A + max over p in [0, 1] of [A p + ln(1 + w p (1-p))], A = k alpha X, w = k X^2 / a.

    |L'| = p and L'' = p (1-p) at the same p, so slope and curvature cannot both be largest. The bracket is
    concave; its slope vanishes at p = 1/2 + b / (2 (2 + sqrt(4 + A b))), b = A + 4 A/w. The maximum is at
    p = 1, and the result is 2 A, if and only if alpha a >= X.
    """
    A, w = floats(k) * floats(alpha) * floats(X), floats(k) * floats(X) ** 2 / floats(a)
    b = A + 4 * floats(alpha) * floats(a) / floats(X)
    p = np.minimum(0.5 + b / (2 * (2 + np.sqrt(4 + A * b))), 1.0)
    return up(A + A * p + np.log1p(w * p * (1 - p)))


def pure_log_cosh(k: ArrayLike, a: ArrayLike, alpha: ArrayLike, c1: ArrayLike, X: ArrayLike = 1.0) -> Array:
    """A + max over p in [0, 1] of [A p + ln(1 + w (1 - p^2))], A = k alpha X, w = k c1 X^2 / a.

    |L'| = p and L'' = c1 (1 - p^2) at the same p. The bracket is concave; its slope vanishes at
    p = b / (1 + sqrt(1 + A b)), b = A + A/w. If alpha a >= 2 c1 X, the maximum is at p = 1, and the result is
    2 A.
    """
    A, w = floats(k) * floats(alpha) * floats(X), bend(k, a, c1, X)
    b = A + floats(alpha) * floats(a) / (floats(c1) * floats(X))
    p = np.minimum(b / (1 + np.sqrt(1 + A * b)), 1.0)
    return up(A + A * p + np.log1p(w * (1 - p) * (1 + p)))


# -- primal perturbation, output noise --------------------------------------------------------------


def primal_sensitivity(
    k: ArrayLike, a: ArrayLike, s1: ArrayLike, gap: ArrayLike = 0.0, X: ArrayLike = 1.0
) -> Array:
    """S = D/a + 2 gap: how far the solver's result moves if one sample is replaced. `gap` is a bound on the
    distance between the solver's result and the minimiser."""
    return up(displacement(k, s1, X) / floats(a) + 2 * floats(gap))


def primal_pure(S: ArrayLike, alpha: ArrayLike) -> Array:
    """alpha S, for primal perturbation with norm noise. The site must continue from the released vector."""
    return up(floats(alpha) * floats(S))


# -- one-vs-rest, rounds ----------------------------------------------------------------------------


def one_vs_rest(cost: ArrayLike, K: int) -> Array:
    """K cost: the cost of K binary problems on the same records with independent noise.

    `cost` is the pure or Renyi cost of one problem. The bound is tight.
    """
    return up(checks.whole("K", K, least=1) * floats(cost))


def compose(costs: ArrayLike) -> Array:
    """The sum over rounds: pure epsilons add up, and so do Renyi divergences of one order."""
    return up(np.sum(floats(costs), axis=-1))


# -- Renyi divergence, order q > 1; r = q - 1 -------------------------------------------------------


def _orders() -> Array:
    """1 + r for r from 0.001 to 100,000, in steps of 2.5% in the range of usual budgets, of 6% elsewhere."""
    r = np.concatenate(
        [np.geomspace(1e-3, 0.1, 79)[:-1], np.geomspace(0.1, 1e3, 370)[:-1], np.geomspace(1e3, 1e5, 79)]
    )
    orders = 1 + r
    orders.flags.writeable = False
    return orders


ORDERS: Array = _orders()
"""The default Renyi orders. For an epsilon between about 0.001 and 10,000, using only these orders instead of
all orders raises epsilon by less than 0.1%."""


def excess(q: ArrayLike) -> Array:
    """r = q - 1 > 0"""
    orders = floats(q)
    if not (orders > 1).all():
        raise ParameterError(f"`q` must be above 1; got {np.min(orders):g}.")
    return np.asarray(orders - 1)


def curl(x: ArrayLike) -> Array:
    """y = x^2 / (1 + x): J(q) depends on x only through y, and r x < 1 is the same as q r y < 1."""
    return up(floats(x) ** 2 / (1 + floats(x)))


def jacobian_renyi(q: ArrayLike, x: ArrayLike) -> Array:
    """J(q) = - log1p(- q r x^2 / (1 + x)) / r while r x < 1, infinite otherwise: the cost of the Jacobian."""
    return curl_renyi(q, curl(x))


def curl_renyi(q: ArrayLike, y: ArrayLike) -> Array:
    """J(q) = - log1p(- q r y) / r while q r y < 1, infinite otherwise. J is convex in y."""
    r = excess(q)
    loss = up(floats(q) * r * floats(y))
    inside = loss < 1
    log = -np.log1p(-np.where(inside, loss, 0.0))
    return np.where(inside, up(log / r), np.inf)


def pure_renyi(q: ArrayLike, epsilon: ArrayLike) -> Array:
    """ln[ (e^(q eps) + e^(-r eps)) / (1 + e^eps) ] / r: the largest Renyi divergence at pure epsilon.

    The likelihood ratio w lies in [e^-eps, e^eps] and has mean 1, and w^q is convex. So the worst w takes
    only the two end values. The divergence is computed as [ln cosh((r + 1/2) eps) - ln cosh(eps / 2)] / r,
    and is never above epsilon or q epsilon^2 / 2.
    """
    return up(scaled_pure_renyi(q, epsilon) / excess(q))


def scaled_pure_renyi(q: ArrayLike, epsilon: ArrayLike) -> Array:
    """r times `pure_renyi`."""
    r, eps = excess(q), floats(epsilon)
    exact = _log_cosh((r + 0.5) * eps) - _log_cosh(eps / 2)
    exact = exact + 1e-14 * _log_cosh((r + 0.5) * eps)
    return up(np.minimum(exact, r * np.minimum(eps, floats(q) * eps**2 / 2)))


def _log_cosh(z: Array) -> Array:
    """ln cosh z for z >= 0, without cancellation near 0 or overflow for large z."""
    near = np.log1p(2 * np.sinh(np.minimum(z, 1.0) / 2) ** 2)
    return np.asarray(np.where(z < 1, near, z + np.log1p(np.exp(-2 * z)) - np.log(2)))


# -- (epsilon, delta) -------------------------------------------------------------------------------


def to_epsilon(orders: ArrayLike, rdp: ArrayLike, delta: float) -> tuple[Array, Array]:
    """(epsilon, q): epsilon = min over q of rdp + ln(1 - 1/q) - ln(delta q) / (q - 1), never below 0, and the
    order q of the minimum.

    rdp : the Renyi cost at each order, along the last axis. If it is infinite at every order, the result is
        (inf, nan).
    """
    delta = checks.probability("delta", delta)
    q, r, cost = floats(orders), excess(orders), floats(rdp)
    first, second = np.log1p(-1 / q), -(np.log(delta) + np.log(q)) / r
    epsilon = cost + first + second + 1e-14 * (np.abs(first) + np.abs(second))
    best = np.argmin(epsilon, axis=-1)
    least = np.take_along_axis(epsilon, best[..., None], axis=-1)[..., 0]
    return up(np.maximum(least, 0.0)), np.where(np.isfinite(least), q[best], np.nan)
