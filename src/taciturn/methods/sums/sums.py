"""A masked sum: each site rounds its vector to a public grid, adds noise and masks, and sends the result.

    v_i = rint(h_i / g),   m_i = v_i + z_i + masks mod 2^64,   sum_i h_i ~ g * signed(sum_i m_i mod 2^64)

Here h_i is what site i adds to the sum (its share), g the grid and z_i the noise. Masks are random vectors
that hide a message. They cancel exactly in the sum, on all machines, because integers are not rounded.

The noise is discrete Gaussian on the integers: P(z) ~ exp(-z^2 / (2 s^2)). Real runs draw from this
distribution exactly (`privacy/discrete.py`), with a fresh secret key each time. Simulations draw normal
numbers from a seed, and round them. For s >= 2^16 and |z| <= 10 s, the ratio of the probabilities of z under
the two distributions is within 1e-9 of 1. A simulation gives no privacy in any case.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ...core import checks
from ...core.errors import ParameterError
from ...core.types import Array
from ...privacy.discrete import discrete_gaussian
from ...rng import SecureStreams, SeededStreams, Streams
from .masks import Message

_ROOM = 2.0**62  # the largest sum over all sites that is allowed; 64-bit integers end at 2^63
_TAIL = 40.0  # a discrete Gaussian exceeds this many standard deviations with probability below exp(-800)
# sensitivity / (grid sqrt(length)) is at least _FINE, so rounding raises the cost by about one millionth
_FINE = 2.0**20
LEAST_STD = 2.0**16  # the smallest standard deviation of the noise, in steps of the grid
MOST_STD = 2.0**50
"""The largest standard deviation of the noise, in steps of the grid. Floats represent all integers up to 8
times this number exactly."""

Integers = NDArray[np.int64]


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
    cost no more privacy.
    """
    bound = largest / grid + 0.5 * sites + _TAIL * std * sites
    if not bound <= _ROOM:
        raise ParameterError(
            f"`grid` = {grid:g} is too fine for a sum of {sites} sites in 64 bits: the sum may reach "
            f"{bound:.3g} steps of the grid, but at most 2^62 are allowed. Use a coarser grid."
        )


def to_integers(h: Array, grid: float) -> Integers:
    """v = rint(h / g). The grid is a power of two, so the division is exact."""
    steps = np.rint(h / grid)
    if not np.all(np.abs(steps) < _ROOM):
        raise ParameterError(f"`grid` = {grid:g} is too fine for 64 bits; use a coarser grid.")
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


def draw(streams: Streams, std: float, shape: tuple[int, int], *, site: int, t: int) -> Integers:
    """Fresh noise of one site and round, (repeats, length); a repeat is one of several independent runs.

    In a real run the noise is drawn exactly and is secret; in a simulation it comes from a seed.
    """
    std = checked_std(std)
    if not streams.simulated:
        return draw_secret(std, shape[0] * shape[1]).reshape(shape)
    if not isinstance(streams, SeededStreams):  # only in audits: one stream for all repeats
        normal = streams.generator(repeat=0, site=site, purpose="noise", t=t).standard_normal(shape)
        return np.rint(std * normal).astype(np.int64)
    drawn = np.empty(shape, dtype=np.int64)
    for repeat in range(shape[0]):
        generator = streams.generator(repeat=repeat, site=site, purpose="noise", t=t)
        drawn[repeat] = np.rint(std * generator.standard_normal(shape[1])).astype(np.int64)
    return drawn


def draw_secret(std: float, size: int) -> Integers:
    """Exact discrete Gaussian integers from a secret source that cannot be seeded."""
    generator = SecureStreams().generator(repeat=0, site=0, purpose="noise", t=0)
    return discrete_gaussian(generator, std, size)


def checked_std(std: float) -> float:
    """The standard deviation, in grid steps. Raises if it is outside the range from 2^16 to 2^50."""
    std = checks.positive("std", std)
    if not LEAST_STD <= std <= MOST_STD:
        raise ParameterError(
            f"`std` must be between 2^16 and 2^50 steps of the grid; got {std:g}. Choose another grid."
        )
    return std
