"""Rounding to the safe side: upper bounds up, lower bounds down."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...core.types import Array

_SLACK = 2.0**-44
"""256 units in the last place of a float: far more than the error of a few operations or of numpy's sums."""


def floats(value: ArrayLike) -> Array:
    """`value` as an array of 64-bit floats."""
    return np.asarray(value, dtype=np.float64)


def up(value: ArrayLike) -> Array:
    """A nonnegative result, increased by more than the rounding errors of the operations that led to it."""
    return np.asarray(floats(value) * (1 + _SLACK))


def down(value: ArrayLike) -> Array:
    """A nonnegative result, decreased by as much as `up` increases it."""
    return np.asarray(floats(value) * (1 - _SLACK))
