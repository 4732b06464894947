"""The bounds for a person with several rows. Weights make these rows count as one row.

Replacing all rows of a person moves every sum, minimiser and noise no further than replacing one row. Only
the change of the Jacobian of the noise map (see `bounds`) differs. If one row is replaced, this change is a
matrix with one nonzero eigenvalue. If all rows of a person are replaced, the matrix has several nonzero
eigenvalues, and the sum of these eigenvalues is not larger.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ...core import checks
from ...core.types import Array
from .bounds import excess
from .rounding import floats, up

_HALVINGS = 80


def spread(rows: int | None, d: int) -> int:
    """R = min(rows, d): the largest number of eigenvalues that a person's rows can change.

    `rows` is a bound on the number of rows of a person, or None.
    """
    d = checks.whole("d", d, least=1)
    return d if rows is None else min(checks.whole("rows", rows, least=1), d)


def person_pure(cost: Callable[[Array], Array], k: ArrayLike, R: int) -> Array:
    """R cost(k / R): the pure bound for a person, where cost(k) is the bound for one row of weight k.

    ln(1 + x) becomes R ln(1 + x/R), because R numbers s_j >= 0 with sum x have
    prod (1 + s_j) <= (1 + x/R)^R.
    """
    return up(R * cost(up(floats(k) / R)))


def person_excess(q: ArrayLike, x: ArrayLike) -> Array:
    """J(q) of a person minus J(q) of a record: [x chi(s*)/s* - chi(x)] / r if x > s*, else 0; r = q - 1.

    J(q) is `bounds.jacobian_renyi`, chi(s) = q ln(1 + s) - ln(1 + q s), and s* is the place at which
    chi(s)/s is largest. The result grows with x. For q >= 1.59 it is 0 for every x with r x < 1.
    """
    q, x = np.broadcast_arrays(floats(q), floats(x))
    s, steepest = _steepest(np.ascontiguousarray(q).tobytes())
    s, steepest = s.reshape(q.shape), steepest.reshape(q.shape)
    more = x * steepest - _chi(q, x)
    rounding = 1e-13 * (x * steepest + q * np.log1p(x))
    return np.asarray(np.where(x > s, up(np.maximum(more, 0.0) + rounding) / excess(q), 0.0))


def _chi(q: Array, s: Array) -> Array:
    return np.asarray(q * np.log1p(s) - np.log1p(q * s))


@functools.lru_cache(maxsize=16)
def _steepest(orders: bytes) -> tuple[Array, Array]:
    """(s*, max of chi(s)/s) for each order q. s* is the zero of s chi'(s) - chi(s), which grows up to
    s = 1/sqrt(q) and then falls below 0."""
    q = np.frombuffer(orders)
    low = 1 / np.sqrt(q)
    high = 2 * low
    while np.any(more := _slope(q, high) > 0):
        high = np.where(more, 2 * high, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        more = _slope(q, middle) > 0
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return low, up((_chi(q, high) + 1e-15 * q * np.log1p(high)) / low)


def _slope(q: Array, s: Array) -> Array:
    """s chi'(s) - chi(s)"""
    return np.asarray(q * (q - 1) * s**2 / ((1 + s) * (1 + q * s)) - _chi(q, s))
