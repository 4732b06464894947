"""A masked sum: each site rounds its share to integers on a public grid, adds noise and masks; all are added.

    v_i = rint(h_i / g),   m_i = v_i + z_i + masks mod 2^64,   sum_i h_i ~ g * signed(sum_i m_i mod 2^64)

Here h_i is the share of site i, g the grid and z_i the noise. The masks cancel exactly in the sum, on any
machines, because integer arithmetic does not round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ...core import checks
from ...core.errors import ParameterError
from ...core.types import Array
from .masks import Message
from .sum_noise import Integers

_ROOM = 2.0**62  # the largest sum over all sites that is allowed; 64-bit integers end at 2^63
_TAIL = 40.0  # standard deviations that a discrete Gaussian exceeds with probability below exp(-800)
_FINE = 2.0**20  # sensitivity / (grid sqrt(length)); with this ratio, rounding raises the cost by about 1e-6


def grid_for(sensitivity: float, length: int) -> float:
    """A grid so fine that rounding costs almost no privacy. It is a power of two, so that scaling is exact.

    >>> grid_for(2.0**-10, 4)
    4.656612873077393e-10
    """
    fine = checks.positive("sensitivity", sensitivity) / (_FINE * math.sqrt(length))
    return 2.0 ** math.floor(math.log2(fine))


def check_room(largest: float, *, grid: float, sites: int, std: float) -> None:
    """Raise unless all sites' values and noise together stay far below 2^63, so that no sum wraps around.

    `largest` bounds sum_i |h_i| in every coordinate. A sum that wrapped around would be useless, but would
    cost no privacy.
    """
    bound = largest / grid + 0.5 * sites + _TAIL * std * sites
    if not bound <= _ROOM:
        raise ParameterError(
            f"`grid` = {grid:g} is too fine for a sum of {sites} sites in 64 bits: up to {bound:.3g} "
            "steps, but only 2^62 are allowed. Use a coarser grid."
        )


def to_integers(h: Array, grid: float) -> Integers:
    """v = rint(h / g). The grid is a power of two, so the division is exact."""
    steps = np.rint(h / grid)
    if not np.all(np.abs(steps) < _ROOM):
        raise ParameterError(f"`grid` = {grid:g} is too fine: a value does not fit into 64 bits.")
    return steps.astype(np.int64)


def add_mask(share: Integers, mask: Message) -> Message:
    """The message m = v + z + mask mod 2^64 that leaves the site; `share` is v + z, the share with noise."""
    return share.view(np.uint64) + mask


def add_up(messages: Iterable[Message]) -> Message:
    """The sum mod 2^64 of all sites' messages; the order does not matter."""
    total: Message | None = None
    for message in messages:
        total = message.copy() if total is None else np.add(total, message, out=total)
    if total is None:
        raise ParameterError("`messages` must contain one message per site; got none.")
    return total


def open_sum(total: Message, grid: float) -> Array:
    """g * signed(total): the noisy sum as floats."""
    return total.view(np.int64).astype(np.float64) * grid
