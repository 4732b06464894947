"""What the cells of a table are worth under a schema, counted: for the eyes of the owner of the rows alone.

A count is computed from the rows and no noise covers it. It belongs on the owner's own screen, and in no
file, log, report or message that anybody else may see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import MISSING, OTHER, is_blank, parse_column, read_numbers
from .fields import Boolean, Category, Date, Field
from .schema import Schema


@dataclass(frozen=True)
class CellCounts:
    """How many cells of a column fit, are moved to the end of their range, cannot be read, or are missing."""

    name: str
    fit: int
    moved: int
    unknown: int
    missing: int

    @property
    def rows(self) -> int:
        """All cells of the column."""
        return self.fit + self.moved + self.unknown + self.missing


def count_cells(schema: Schema, table: Mapping[str, Sequence[Any]]) -> list[CellCounts]:
    """The counts of every column of the schema."""
    return [count_column(field, table[field.name]) for field in schema]


def count_column(field: Field, values: Sequence[Any] | NDArray[Any]) -> CellCounts:
    """The counts of one column."""
    if isinstance(field, Category):
        places = parse_column(field, values)
        unknown, missing = int(np.sum(places == OTHER)), int(np.sum(places == MISSING))
        return CellCounts(field.name, len(places) - unknown - missing, 0, unknown, missing)
    blank = np.fromiter(map(is_blank, values), dtype=bool, count=len(values))
    if isinstance(field, Boolean):
        numbers, low, high = parse_column(field, values), 0.0, 1.0
    elif isinstance(field, Date):
        numbers, low, high = parse_column(field, values), float(field.start), float(field.start + field.days)
    else:
        parse_column(field, values)  # refuses a column of another type
        numbers, low, high = read_numbers(values), field.low, field.high
    readable = ~np.isnan(numbers)
    moved = int(np.sum(readable & ((numbers < low) | (numbers > high))))
    return CellCounts(
        name=field.name,
        fit=int(readable.sum()) - moved,
        moved=moved,
        unknown=int(np.sum(~readable & ~blank)),
        missing=int(np.sum(~readable & blank)),
    )
