"""Which map to use, from public numbers alone: how many records, the budget, how many columns.

A map brings columns, and every column its share of the noise: with n records and a budget of mu, n mu / d is
the signal over the noise of each of d columns.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from ...core import checks
from ...core.errors import ParameterError
from ..tables.column_types import Date, Number
from ..tables.schema import Schema

KNOTS, WAVES = 9, 100
_CURVES, _SURFACES = 10.0, 30.0  # the least n mu / d
_RECORDS = 50.0  # the least n / d: with fewer, a curve follows the records and not the effect
_LEAST_DELTA = 1e-12  # what a pure guarantee is taken for


def choose_map(
    n: int, epsilon: float, delta: float, *, numbers: int, others: int = 0, noises: float = 1.0
) -> tuple[int, int]:
    """(curves, surfaces): none, curves, or curves and surfaces, for these numbers of columns.

    `noises` : N / h, how much more noise the sites' sums carry than a trusted centre's.

    >>> [choose_map(n, 1.0, 1e-5, numbers=6, others=99) for n in (2_000, 10_000, 50_000)]
    [(0, 0), (9, 0), (9, 100)]
    """
    checks.whole("n", n, least=1)
    mu = math.inf if epsilon == math.inf else _mu(checks.positive("epsilon", epsilon), delta)
    width = others + numbers * (1 + KNOTS)
    for surfaces, rate in ((WAVES, _SURFACES), (0, _CURVES)):
        columns = width + surfaces
        if numbers and n >= _RECORDS * columns and n * mu >= rate * columns * math.sqrt(noises):
            return KNOTS, surfaces
    return 0, 0


def schema_map(schema: Schema, n: int, epsilon: float, delta: float, noises: float = 1.0) -> tuple[int, int]:
    """(curves, surfaces) for the columns of a table."""
    numbers = sum(isinstance(field, Number | Date) for field in schema)
    others = len(schema.feature_names) - numbers
    return choose_map(n, epsilon, delta, numbers=numbers, others=others, noises=noises)


def _mu(epsilon: float, delta: float) -> float:
    """The mu of Gaussian noise that just meets (epsilon, delta): good to a few digits, and no bound."""
    if not 0 <= delta < 1:
        raise ParameterError(f"`delta` must be at least 0 and below 1; got {delta}.")
    least = max(delta, _LEAST_DELTA)

    def excess(mu: float) -> float:
        far = epsilon / mu + mu / 2
        return float(ndtr(mu - far) - math.exp(min(epsilon + float(log_ndtr(-far)), 0.0)) - least)

    return float(brentq(excess, 1e-9, 2 * epsilon + 20, rtol=1e-4))
