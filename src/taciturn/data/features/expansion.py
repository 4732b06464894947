"""Expansion: numbers in [0, 1] and one-hot blocks as one row of norm at most 1.

Nothing here depends on rows: knots are equally spaced and frequencies come from a public seed. So a linear
model of the expanded row is a richer model of the record, and every privacy bound stays as it is.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ...core import checks
from ...core.errors import DataError
from ...core.types import Array

PLAIN = 0.3  # of a curve's squared norm: the column itself, 2v - 1, beside its hats
SURFACES = 0.3  # of a row's squared norm, where there are surfaces
_SPREAD = 2.0  # standard deviation of a frequency
_MOST = 10_000  # knots or surfaces
_ENTRIES = 2**22  # in a block of rows


@dataclass(frozen=True)
class Expansion:
    """Hats at `curves` knots for every number, `surfaces` cosines of all numbers together.

    With both at 0, or one knot, a number stays one column: a straight line. A missing number (NaN) has an
    indicator in place of its hats if `indicators`, else zeros; the surfaces take it to be in the middle of
    its range.

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
        """How many hats a number has beside its own column: none where it is a straight line."""
        return self.curves if self.curves > 1 else 0

    def names(self, numbers: Sequence[str], blocks: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """Of each number the column itself, `age@1` for its knots and `age?` if missing; blocks; surfaces."""
        found = []
        for name in numbers:
            found += [name, *(f"{name}@{k + 1}" for k in range(self.knots))]
            found += [f"{name}?"] * self.indicators
        found += [name for block in blocks for name in block]
        return (*found, *(f"surface {k + 1}" for k in range(self._cosines(len(numbers)))))

    def width(self, numbers: int) -> int:
        """How many columns a number becomes, and all surfaces together."""
        return numbers * (1 + self.knots + self.indicators) + self._cosines(numbers)

    def rows(self, units: Array, blocks: Sequence[Array]) -> Array:
        """The expanded rows: `units` are the numbers, (rows, columns); blocks have norm at most 1 each."""
        rows, numbers = units.shape
        parts = max(numbers + len(blocks), 1)
        cosines = self._cosines(numbers)
        share = (1.0 - SURFACES if cosines else 1.0) / parts
        Z = np.zeros((rows, self.width(numbers) + sum(block.shape[1] for block in blocks)))
        for some in _row_blocks(rows, Z.shape[1]):
            start = 0
            for k in range(numbers):
                start = self._number(Z[some], start, units[some, k])
            for block in blocks:
                Z[some, start : start + block.shape[1]] = block[some]
                start += block.shape[1]
            Z[some, :start] *= math.sqrt(share)
            if cosines:
                Z[some, start:] = math.sqrt(SURFACES) * self._surface(units[some])
        return Z

    def _cosines(self, numbers: int) -> int:
        """Surfaces need numbers."""
        return self.surfaces if numbers else 0

    def _number(self, Z: Array, start: int, v: Array) -> int:
        """One number's columns of Z from `start` on, of norm at most 1; where the next ones start."""
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
        """sqrt(2/D) cos(w.v + phase) for D frequencies w, at most 1 long."""
        w, phase = frequencies(self.seed, self.surfaces, units.shape[1])
        waves = np.cos(np.nan_to_num(units, nan=0.5) @ w.T + phase) * math.sqrt(2.0 / self.surfaces)
        return np.asarray(waves / np.maximum(np.linalg.norm(waves, axis=1), 1.0)[:, None])


def frequencies(seed: int, surfaces: int, numbers: int) -> tuple[Array, Array]:
    """w ~ N(0, 4 I), (surfaces, numbers), and phases uniform on [0, 2 pi), from SHAKE-256 of public numbers.

    A hash and not a generator of NumPy, whose streams may change from release to release.
    """
    asked = f"taciturn surfaces/1 {seed} {surfaces} {numbers}".encode()
    count = surfaces * (numbers + 1)
    words = np.frombuffer(hashlib.shake_256(asked).digest(8 * count), dtype="<u8")
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    w = _SPREAD * ndtri(uniform[: surfaces * numbers]).reshape(surfaces, numbers)
    return w, 2.0 * math.pi * uniform[surfaces * numbers :]


def _row_blocks(rows: int, width: int) -> Iterator[slice]:
    """A few rows at a time: what is computed on the way stays small beside the result."""
    step = max(1, _ENTRIES // max(width, 1))
    yield from (slice(start, start + step) for start in range(0, rows, step))
