"""Numbers rounded to the safe side."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...core.types import Array

_SLACK = 2.0**-44
"""256 units in the last place: far more than a few operations, or numpy's pairwise sum, can lose."""


def floats(value: ArrayLike) -> Array:
    """As an array of 64-bit floats."""
    return np.asarray(value, dtype=np.float64)


def up(value: ArrayLike) -> Array:
    """A nonnegative result, moved up by more than the rounding of the operations that led to it."""
    return np.asarray(floats(value) * (1 + _SLACK))


def down(value: ArrayLike) -> Array:
    """A nonnegative result, moved down by as much."""
    return np.asarray(floats(value) * (1 - _SLACK))
