"""The cost of masked sums, in which the noise of all honest sites together protects each record.

Site i sends v_i + z_i in whole grid units. Masks hide the message, so that an observer sees only the sum over
the honest sites. z_i is discrete Gaussian noise of standard deviation s (the spread), equal at all sites. If
c of the N sites collude, the noise of the N - c honest sites protects each honest site. If replacing one
record moves a site's vector by at most S, and the floating-point errors of the vectors before and after the
replacement are at most gap each (in `SumFacts`: `sensitivity` S, `stray` gap, `std` s), then
the sum is mu-GDP (see `gaussian.py`) with

    mu = ((S + 2 gap) / grid + sqrt(d)) / (s sqrt(N - c))        sqrt(d): the rounding to whole units

if the noise is a sum of *rounded normals*. `Slack` is the additional cost of discrete Gaussian noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core import checks
from ...core.errors import ParameterError
from ...core.types import Array
from .gaussian import gaussian_epsilon
from .rounding import floats, up

_FAILURE = 1e-40  # probability, per release, that the noise vector is longer than `discrete_slack` assumes
_SMALLEST = 8.0  # grid units: below this, a sum of discrete Gaussians is not close to a discrete Gaussian
_SHARE = 1e-9  # this part of delta is reserved for noise vectors longer than `discrete_slack` assumes
MARGIN = 0.1  # by how much the `stretch` of a slack may raise epsilon
CALM = 50.0  # up to this epsilon, e^epsilon times a probability of 1e-40 is negligible


class Slack(NamedTuple):
    """What discrete noise adds to epsilon and delta, compared with rounded normal noise."""

    epsilon: float
    failure: float


def release_mu(
    S: ArrayLike, grid: ArrayLike, d: int, spread: ArrayLike, honest: ArrayLike = 1, gap: ArrayLike = 0.0
) -> Array:
    """mu of one release: ((S + 2 gap) / grid + sqrt(d)) / (spread sqrt(honest)); spread in grid units."""
    units = (floats(S) + 2 * floats(gap)) / floats(grid) + math.sqrt(checks.whole("d", d, least=1))
    return up(units / (floats(spread) * np.sqrt(floats(honest))))


def discrete_slack(spread: float, d: int, releases: int, honest: int = 1) -> Slack:
    """By how much `releases` vectors of discrete noise in Z^d differ from rounded normals.

    The probabilities P(k) of a discrete Gaussian of spread s and of a rounded normal differ by a factor
    between exp(-|k|^2 / 24 s^4), up to the normaliser, and exp(1 / 24 s^2). Both directions together give
    (d + rho^2) / 24 s^2, where |k| <= rho s except with probability 1e-40. A sum of discrete Gaussians is a
    discrete Gaussian of the summed variance, up to 10 exp(-pi^2 s^2) per coordinate, summand and direction
    [KLS21].
    """
    spread = checks.positive("spread", spread)
    if spread < _SMALLEST:
        raise ParameterError(f"`spread` must be at least {_SMALLEST:g} grid units; got {spread:g}.")
    d, releases = checks.whole("d", d, least=1), checks.whole("releases", releases)
    honest = checks.whole("honest", honest, least=1)
    total = spread**2 * honest
    x = -math.log(_FAILURE)
    rho = math.sqrt(d + 2 * math.sqrt(d * x) + 2 * x) + math.sqrt(d / (4 * total))
    rounding = (d + rho**2) / (24 * total) + 3 * d * math.exp(-min(2 * math.pi**2 * total, 700.0))
    summing = 20 * d * (honest - 1) * math.exp(-min((math.pi * spread) ** 2, 700.0))
    return Slack(float(up(releases * (rounding + summing))), releases * _FAILURE)


def stretch(epsilon: ArrayLike) -> Array:
    """The factor k by which a slack is enlarged at a large epsilon; 1 up to epsilon = CALM.

    In `discrete_slack`, if the failure probability falls from 1e-40 to (1e-40)^k, rho^2 grows at most k
    times. This k makes e^epsilon (1e-40)^k = e^CALM 1e-40, which is negligible.
    """
    return up(1 + np.maximum(floats(epsilon) - CALM, 0.0) / -math.log(_FAILURE))


def masked_epsilon(mu: ArrayLike, delta: float, slack: Slack) -> Array:
    """epsilon at delta of discrete releases that together are mu-GDP up to `slack`; inf if no bound is found.

    The bound chains three inequalities P(E) <= e^a P'(E) + ... (discrete to rounded normal noise, mu-GDP, and
    back): epsilon grows by the slack, and delta becomes e^slack (delta + e^epsilon failure).
    """
    delta = checks.probability("delta", delta)
    plain = gaussian_epsilon(mu, delta * math.exp(-min(slack.epsilon, 700.0)) * (1 - 2 * _SHARE))
    with np.errstate(over="ignore", invalid="ignore"):  # a value that is not finite gives inf
        lost = np.exp(plain + slack.epsilon) * slack.failure
    found = np.where(lost <= _SHARE * delta, up(plain + slack.epsilon), np.inf)
    return found if np.all(np.isfinite(found)) else _large_epsilon(found, plain, mu, delta, slack)


def _large_epsilon(found: Array, plain: Array, mu: ArrayLike, delta: float, slack: Slack) -> Array:
    """`found`; an infinite entry is replaced if a `stretch` of the slack proves a finite epsilon."""
    if not slack.failure * math.exp(CALM) <= _SHARE * delta * (1 - 1e-9):
        return found
    most = np.where(np.isfinite(plain), plain, 0.0) + 2 * slack.epsilon + MARGIN
    more = stretch(most) * slack.epsilon
    inner = delta * np.exp(-np.minimum(more, 700.0)) * (1 - 2 * _SHARE)
    large = up(gaussian_epsilon(mu, inner) + more)
    return np.where(np.isinf(found) & (large <= most), large, found)
