"""Choose a feature map from public numbers alone: the number of records, the budget, the number of columns.

A map adds columns (hat functions for `curves`, cosines for `surfaces`; see expansion.py), and every column
adds noise. With n records, d columns and a budget of mu (the parameter of Gaussian differential privacy), the
ratio of signal to noise in each column is about n mu / d.
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
_CURVES, _SURFACES = 10.0, 30.0  # curves, or surfaces, are chosen only if n mu / d is at least this
_RECORDS = 50.0  # the smallest n / d; a map with fewer records per column overfits
_LEAST_DELTA = 1e-12  # a pure guarantee (delta = 0) is treated as if delta were this


def choose_map(
    n: int, epsilon: float, delta: float, *, numbers: int, others: int = 0, noises: float = 1.0
) -> tuple[int, int]:
    """(curves, surfaces) for `numbers` numeric and `others` other columns: neither, only curves, or both.

    noises : the variance of the noise, divided by the variance that one trusted party with all rows would
        need. It is N / h, where h is the number of honest sites among the N sites.

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
    """The mu that corresponds to (epsilon, delta), correct to a few digits. It is not a privacy bound."""
    if not 0 <= delta < 1:
        raise ParameterError(f"`delta` must be at least 0 and below 1; got {delta}.")
    least = max(delta, _LEAST_DELTA)

    def excess(mu: float) -> float:
        far = epsilon / mu + mu / 2
        return float(ndtr(mu - far) - math.exp(min(epsilon + float(log_ndtr(-far)), 0.0)) - least)

    return float(brentq(excess, 1e-9, 2 * epsilon + 20, rtol=1e-4))
