"""MappedRows: the rows that a public map makes from the records of a table, computed a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.types import Array, LazyRows

Columns = Mapping[Any, NDArray[Any]]

HELD = 2**27
"""Up to this many entries (1 GB), a fit keeps all expanded rows in memory, for speed."""


@dataclass(frozen=True, eq=False, repr=False)
class MappedRows(LazyRows):
    """The rows expand(record) of all records of a table. The table is stored, but not the expanded rows.

    expand : turns some records, given as columns, into rows. Each row depends on its own record alone.
    """

    columns: Columns
    expand: Callable[[Columns], Array]
    shape: tuple[int, int]

    def take(self, chosen: Any) -> Array:
        return self.expand({key: column[chosen] for key, column in self.columns.items()})


def held_if_few(rows: LazyRows) -> Any:
    """The rows as an array if they have at most HELD entries; otherwise the lazy rows themselves."""
    return np.asarray(rows) if rows.size <= HELD else rows
