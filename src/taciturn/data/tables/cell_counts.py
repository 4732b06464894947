"""Count the cells of a table that fit its schema, for the owner of the rows only.

The counts are computed without noise, so they are not private. Show them only on the owner's own screen. Do
not write them to a file, log, report or message that other people may see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .column_parsing import MISSING, OTHER, is_blank, parse_column, read_numbers
from .column_types import Boolean, Category, Date, Field
from .schema import Schema


@dataclass(frozen=True)
class CellCounts:
    """How many cells of a column fit the column's entry in the schema, and how many do not, by reason.

    moved : cells outside the range, which the encoder clips to the range.
    unknown : cells that are unreadable or of an undeclared category.
    """

    name: str
    fit: int
    moved: int
    unknown: int
    missing: int

    @property
    def rows(self) -> int:
        """The number of all cells of the column."""
        return self.fit + self.moved + self.unknown + self.missing

    @property
    def many_lost(self) -> bool:
        """Whether more than a tenth of the cells do not fit."""
        return 10 * (self.rows - self.fit) > self.rows

    def losses(self) -> str:
        """A text that says how many cells do not fit, and why."""
        return (
            f"{self.rows - self.fit} of {self.rows} cells of `{self.name}` do not fit: {self.unknown} "
            f"unreadable or unknown, {self.missing} missing, {self.moved} outside the range"
        )


def count_cells(schema: Schema, table: Mapping[str, Sequence[Any]]) -> list[CellCounts]:
    """The counts of every column of the schema."""
    return [count_column(field, table[field.name]) for field in schema]


def count_column(field: Field, values: Sequence[Any] | NDArray[Any]) -> CellCounts:
    """The counts of one column."""
    if isinstance(field, Category):
        places = parse_column(field, values)
        unknown, missing = int(np.sum(places == OTHER)), int(np.sum(places == MISSING))
        return CellCounts(field.name, len(places) - unknown - missing, 0, unknown, missing)
    numbers, low, high = parse_column(field, values), 0.0, 1.0  # raises an error for a column of another type
    if isinstance(field, Date):
        low, high = float(field.start), float(field.start + field.days)
    elif not isinstance(field, Boolean):
        numbers, low, high = read_numbers(values), field.low, field.high
    blank = np.fromiter(map(is_blank, values), dtype=bool, count=len(values))
    lost, moved = np.isnan(numbers), int(np.sum((numbers < low) | (numbers > high)))
    fit, missing = int(np.sum(~lost)) - moved, int(np.sum(lost & blank))
    return CellCounts(field.name, fit, moved, int(np.sum(lost & ~blank)), missing)
