"""The types that all packages share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
"""An array of floats, of any shape."""

_PIECE = 2**16  # how many entries of lazy rows are computed at a time (half a megabyte)


class LazyRows(ABC):
    """An array of n rows and d columns. Rows are computed when they are needed, and are not stored.

    The bits of a row do not depend on which other rows are computed at the same time.
    """

    shape: tuple[int, int]

    @abstractmethod
    def take(self, chosen: Any) -> Array:
        """The chosen rows as a new array; `chosen` is a slice, or an array of row indices."""

    @property
    def size(self) -> int:
        """The number of entries in all rows."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def slices(self) -> Iterator[slice]:
        """Short slices that cover all rows, as `row_slices` yields them."""
        return row_slices(*self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All rows, as an ordinary array."""
        whole = np.empty(self.shape, dtype)
        for some in self.slices():
            whole[some] = self.take(some)
        return whole


def row_slices(rows: int, width: int) -> Iterator[slice]:
    """Short slices that cover all rows. All but the last have the same length, a multiple of 64."""
    step = max(_PIECE // max(width, 1) // 64, 1) * 64
    yield from (slice(start, min(start + step, rows)) for start in range(0, rows, step))
