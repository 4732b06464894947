"""Bounds on one release, as docs/privacy.md states them: what the sums in `accounting/totals.py` add up."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from taciturn.core import checks
from taciturn.core.types import Array
from taciturn.privacy.accounting.bounds import excess, jacobian_renyi, pure_renyi
from taciturn.privacy.accounting.masked_sums import discrete_slack, masked_epsilon
from taciturn.privacy.accounting.moment import log_moment
from taciturn.privacy.accounting.persons import person_excess
from taciturn.privacy.accounting.rounding import floats, up


def output_pure(gap: ArrayLike, alpha_out: ArrayLike) -> Array:
    """2 gap alpha_out: what norm output noise adds when each solve ends within gap of its minimiser."""
    return up(2 * floats(gap) * floats(alpha_out))


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


def renyi_norm(q: ArrayLike, D: ArrayLike, alpha: ArrayLike, d: int, x: ArrayLike, pure: ArrayLike) -> Array:
    """ln E_{R ~ Gamma(d, 1/alpha)} exp psi(R) / r + J(q), never above what `pure` epsilon allows.

    `pure` is the pure epsilon of the same release; where r x >= 1 it alone speaks.
    """
    shift = up(log_moment(q, floats(D) * floats(alpha), checks.whole("d", d, least=1)) / excess(q))
    return np.minimum(up(shift + jacobian_renyi(q, x)), pure_renyi(q, pure))


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


def person_jacobian_renyi(q: ArrayLike, x: ArrayLike) -> Array:
    """J(q) of a person: [phi(x) + x max over s <= x of chi(s)/s] / r, infinite where r x >= 1.

    phi(m) = - r ln(1+m) - ln(1 - r m),  chi(s) = phi(-s/(1+s)) = q ln(1+s) - ln(1 + q s)

    chi(s)/s rises up to some s*(q) and falls from there on, so up to x = s* this is `jacobian_renyi`.
    """
    return up(jacobian_renyi(q, x) + person_excess(q, x))


def epsilon_against(mu_alone: float, sites: int, delta: float, spread: float, d: int, releases: int) -> Array:
    """epsilon for c = 0 .. N-1 colluding sites, (N,); `mu_alone` is what holds if all the others do.

    Every mu(t) falls with the square root of the number of honest sites, so their composition does.
    """
    sites = checks.whole("sites", sites, least=1)
    mu = up(checks.nonnegative("mu_alone", mu_alone) / np.sqrt(np.arange(sites, 0, -1.0)))
    each = [
        masked_epsilon(value, delta, discrete_slack(spread, d, releases, sites - c))
        for c, value in enumerate(mu.tolist())
    ]
    return np.asarray(each, dtype=np.float64)
