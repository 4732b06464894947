"""Discrete Gaussian noise on the integers: P(z) ~ exp(-z^2 / (2 s^2)).

Real runs draw from this distribution exactly (`privacy/discrete.py`), with a fresh key each time. Simulations
round a seeded Gaussian. For s >= 2^16 the probabilities that the two give to an integer differ by a factor
within 1e-10 of 1. A simulation gives no privacy in any case.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core import checks
from ...core.errors import ParameterError
from ...privacy.discrete import discrete_gaussian
from ...rng import SecureStreams, SeededStreams, Streams

LEAST_STD = 2.0**16
MOST_STD = 2.0**50
"""The largest standard deviation for which floats represent every integer that may be drawn."""

Integers = NDArray[np.int64]


def draw(streams: Streams, std: float, shape: tuple[int, int], *, site: int, t: int) -> Integers:
    """Fresh noise of one site and round, (repeats, length).

    In a real run the noise is drawn exactly and is secret; in a simulation it comes from a seed.
    """
    std = checked_std(std)
    if not streams.simulated:
        return draw_secret(std, shape[0] * shape[1]).reshape(shape)
    if not isinstance(streams, SeededStreams):  # one stream for all repeats of an audit
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
