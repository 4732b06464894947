"""Warn, before anything is spent, if public numbers show that the noise would hide the signal.

Consider rows of norm 1 that vary equally in d directions, with labels that a plane separates. At the model
f = 0 the mean gradient of these rows has a norm of about L sqrt(2 / (pi d)), where L is the bound on the
slope of the loss. Replacing one of n units moves the gradient by at most 2 L / n. If the whole budget were
spent on one release of this gradient, with N sites of which h are honest, the noise would have a norm of
2 L sqrt(d N / h) / (n mu). Here mu measures the budget, as in Gaussian differential privacy. With delta = 0
the noise has the density exp(-||e|| epsilon n / (2 L)), and its norm is that of Gaussian noise with
mu = epsilon / sqrt(d + 1).
A fit has more noise than this release, and most tables have a weaker signal than these rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from ..core.errors import BudgetTooSmallWarning
from ..privacy.accounting.gaussian import gaussian_mu


def noise_over_signal(
    units: int, dimension: int, *, sites: int, colluding: int | None, epsilon: float, delta: float
) -> float:
    """The norm of the smallest possible noise divided by the norm of a strong signal; 0 without privacy.

    >>> round(noise_over_signal(10, 4, sites=5, colluding=None, epsilon=1.0, delta=1e-5), 1)
    8.4
    """
    if math.isinf(epsilon):
        return 0.0
    mu = float(gaussian_mu(epsilon, delta) if delta else epsilon / math.sqrt(dimension + 1))
    honest = 1 if colluding is None else max(sites - colluding, 1)
    noise = 2 * math.sqrt(dimension * sites / honest) / (units * mu)
    return noise / math.sqrt(2 / (math.pi * dimension))


def warn_of_noise(
    samples: Sequence[int], dimension: int, *, colluding: int | None, epsilon: float, delta: float
) -> None:
    """Warn if the noise exceeds the signal: the model would hardly be better than chance."""
    units, sites = sum(samples), len(samples)
    share = noise_over_signal(
        units, dimension, sites=sites, colluding=colluding, epsilon=epsilon, delta=delta
    )
    if share > 1:
        warnings.warn(
            f"at this budget the noise is larger than the signal (about {share:.2g} times as large), for "
            f"{units} records or persons, {dimension} columns and {sites} sites: expect a model that is "
            "little better than chance. Use more rows, fewer columns or a larger `epsilon`, or set "
            "`colluding`.",
            BudgetTooSmallWarning,
            stacklevel=5,
        )
