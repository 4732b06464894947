"""Expansion: turns the numbers in [0, 1] and the one-hot blocks of a record into one row of norm at most 1.

A linear model of the expanded row is a nonlinear model of the record. Each number gets a curve: its own
column, and hat functions (linear B-splines) at equally spaced knots. All numbers together get surfaces:
cosines with random frequencies from a public seed (random Fourier features), which represent interactions.
The map does not depend on any row, so no privacy bound changes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from ...core import checks
from ...core.errors import DataError
from ...core.types import Array

PLAIN = 0.3  # the share of the column 2v - 1 in the squared norm of the curve of v; the hats have the rest
SURFACES = 0.3  # the share of the surfaces in a row's squared norm, if there are surfaces
_SPREAD = 2.0  # standard deviation of a frequency
_MOST = 10_000  # the largest number of knots or surfaces
_ROWS = 64  # rows in each matrix product for the surfaces


@dataclass(frozen=True)
class Expansion:
    """Hat functions at `curves` knots for every number, and `surfaces` cosines of all numbers together.

    With 0 or 1 knots a number stays one column, and its effect is a straight line. The columns of a missing
    number (NaN) are 0; with `indicators` an extra column is 1 if the number is missing. The surfaces treat a
    missing number as the middle of its range.

    >>> Expansion(curves=3).rows(np.array([[0.25], [np.nan]]), []).round(3)
    array([[-0.274,  0.418,  0.418,  0.   ,  0.   ],
           [ 0.   ,  0.   ,  0.   ,  0.   ,  1.   ]])
    """

    curves: int = 0
    surfaces: int = 0
    seed: int = 0
    indicators: bool = True

    def __post_init__(self) -> None:
        for name in ("curves", "surfaces"):
            if checks.whole(name, getattr(self, name)) > _MOST:
                raise DataError(f"`{name}` must be at most {_MOST}; got {getattr(self, name)}.")
        checks.whole("seed", self.seed)

    @property
    def knots(self) -> int:
        """The number of hat functions of each number; 0 for a straight line."""
        return self.curves if self.curves > 1 else 0

    def names(self, numbers: Sequence[str], blocks: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """The names of all columns: `age`, `age@1` (its first knot), `age?` (missing), blocks, surfaces."""
        found = []
        for name in numbers:
            found += [name, *(f"{name}@{k + 1}" for k in range(self.knots))]
            found += [f"{name}?"] * self.indicators
        found += [name for block in blocks for name in block]
        return (*found, *(f"surface {k + 1}" for k in range(self._cosines(len(numbers)))))

    def width(self, numbers: int) -> int:
        """The number of columns for all numbers and all surfaces."""
        return numbers * (1 + self.knots + self.indicators) + self._cosines(numbers)

    def rows(self, units: Array, blocks: Sequence[Array]) -> Array:
        """The expanded rows, from the numbers `units`, (rows, columns), and blocks with rows of norm <= 1."""
        rows, numbers = units.shape
        parts = max(numbers + len(blocks), 1)
        cosines = self._cosines(numbers)
        share = (1.0 - SURFACES if cosines else 1.0) / parts
        Z = np.zeros((rows, self.width(numbers) + sum(block.shape[1] for block in blocks)))
        start = 0
        for k in range(numbers):
            start = self._number(Z, start, units[:, k])
        for block in blocks:
            Z[:, start : start + block.shape[1]] = block
            start += block.shape[1]
        Z[:, :start] *= math.sqrt(share)
        if cosines:
            Z[:, start:] = math.sqrt(SURFACES) * self._surface(units)
        return Z

    def _cosines(self, numbers: int) -> int:
        """The number of surfaces: 0 if there are no numbers."""
        return self.surfaces if numbers else 0

    def _number(self, Z: Array, start: int, v: Array) -> int:
        """Fill the columns of one number, from `start`, with norm at most 1. Return the next free column."""
        known = np.flatnonzero(~np.isnan(v))
        plain = PLAIN if self.knots else 1.0
        found = np.clip(v[known], 0.0, 1.0)
        Z[known, start] = math.sqrt(plain) * (2.0 * found - 1.0)
        if self.knots:
            place = found * (self.knots - 1)
            left = np.minimum(place.astype(np.int64), self.knots - 2)
            right = place - left
            Z[known, start + 1 + left] = math.sqrt(1.0 - plain) * (1.0 - right)
            Z[known, start + 2 + left] = math.sqrt(1.0 - plain) * right
        start += 1 + self.knots
        if self.indicators:
            Z[:, start] = np.isnan(v)
        return start + self.indicators

    def _surface(self, units: Array) -> Array:
        """sqrt(2/D) cos(w.v + phase) for D frequencies w, scaled down to norm 1 if the norm is larger.

        Each matrix product has exactly _ROWS rows; the last product is filled up with rows of zeros. With
        another number of rows, BLAS might sum in a different order, which would change the bits.
        """
        w, phase = frequencies(self.seed, self.surfaces, units.shape[1])
        known = np.zeros((-(-len(units) // _ROWS), _ROWS, units.shape[1]))
        known.reshape(-1, units.shape[1])[: len(units)] = np.nan_to_num(units, nan=0.5)
        moved = (known @ w.T).reshape(-1, self.surfaces)[: len(units)]
        waves = np.cos(moved + phase) * math.sqrt(2.0 / self.surfaces)
        return np.asarray(waves / np.maximum(np.linalg.norm(waves, axis=1), 1.0)[:, None])


@lru_cache(maxsize=8)
def frequencies(seed: int, surfaces: int, numbers: int) -> tuple[Array, Array]:
    """w ~ N(0, 4 I), (surfaces, numbers), and phases uniform on [0, 2 pi), from SHAKE-256 of public numbers.

    A hash is used because the streams of NumPy's generators may change from release to release.
    """
    asked = f"taciturn surfaces/1 {seed} {surfaces} {numbers}".encode()
    count = surfaces * (numbers + 1)
    words = np.frombuffer(hashlib.shake_256(asked).digest(8 * count), dtype="<u8")
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    w = _SPREAD * ndtri(uniform[: surfaces * numbers]).reshape(surfaces, numbers)
    phase = 2.0 * math.pi * uniform[surfaces * numbers :]
    w.flags.writeable = phase.flags.writeable = False  # the cache returns the same arrays again
    return w, phase
