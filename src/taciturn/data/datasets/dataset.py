"""Dataset: an encoded public data set, with its schema, its licence and its columns before encoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError
from ..tables.column_parsing import Parsed
from ..tables.column_types import Category
from ..tables.schema import Schema


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data set with read-only X and y: rows of norm at most 1 (unless rows="raw"), labels -1 or +1.

    names : the names of the columns of X.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    names: tuple[str, ...]
    test: NDArray[np.bool_]  # True for the rows that the authors of the data chose for testing
    schema: Schema  # the schema with which X was encoded
    sha256: Mapping[str, str]  # file -> hex digest, for the files from which the data were read
    licence: str
    place: str  # where the files were found
    scaling: str
    rows: str
    _columns: Parsed = field(default_factory=dict)

    def __post_init__(self) -> None:
        for array in (self.X, self.y, self.test, *self._columns.values()):
            array.flags.writeable = False

    def column(self, name: str) -> NDArray[np.float64] | NDArray[np.str_]:
        """A column before encoding: numbers, or the names of categories; for example for `deal_by`."""
        for entry in self.schema:
            if entry.name == name:
                values = self._columns[name]
                if isinstance(entry, Category):  # the indices MISSING (-2) and OTHER (-1) count from the end
                    return np.array([*entry.values, "(missing)", "(other)"])[values]
                return values
        raise DataError(f"`name` must be one of {', '.join(self.schema.names)}; got {name!r}.")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"Dataset({self.name}, {rows} x {features}, scaling={self.scaling}, rows={self.rows})"
