"""Dataset: a public data set, scaled by a schema of this package or as in the paper (see adult.py)."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import checks
from ...core.errors import DataError, PrivacyLeakWarning
from ..tables.column_parsing import Parsed, parse
from ..tables.column_types import Category, Number
from ..tables.encoder import bound_rows, encode
from ..tables.schema import Schema
from .fetch import Source

SCALINGS = ("paper", "public")
ROWS = ("clip", "scale", "raw")


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
        """A column as it was before encoding, for example for `deal_by`: numbers, or names of categories."""
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


def shipped_schema(name: str) -> Schema:
    """The schema of a data set that `taciturn` can load.

    The ranges are round numbers, chosen by people who had seen these well-known data. That is fine for a
    benchmark, but the ranges of a private table must not be chosen in this way.
    """
    text = resources.files(__package__).joinpath("schemas", f"{name}.json").read_text("utf-8")
    return Schema.from_dict(json.loads(text))


def check_choices(rows: str, scaling: str = "public") -> None:
    """Raise an error if `rows` or `scaling` is not valid. Loaders call this before they download files."""
    checks.choice("scaling", scaling, SCALINGS)
    checks.choice("rows", rows, ROWS)


def as_dataset(
    source: Source,
    place: str,
    table: Any,
    y: NDArray[np.float64],
    *,
    test: NDArray[np.bool_] | None = None,
    scaling: str = "public",
    rows: str,
) -> Dataset:
    """Encode a table with the shipped schema; `load_adult` explains `scaling` and `rows`."""
    schema = shipped_schema(source.name)
    columns = parse(schema, table)
    if scaling == "paper":
        warnings.warn(
            "`scaling` = 'paper' divides each column by its largest value, so the rows reveal this value. "
            "`scaling` = 'public' uses public ranges instead.",
            PrivacyLeakWarning,
            stacklevel=3,
        )
        numbers = [field.name for field in schema if isinstance(field, Number)]
        schema = schema.with_ranges({name: (0.0, float(columns[name].max())) for name in numbers})
    X = encode(schema, columns)
    if rows != "raw":
        worst = math.sqrt(len(schema))
        if scaling == "paper" and rows == "scale":
            worst = float(np.sqrt(np.einsum("ij,ij->i", X, X)).max())
        X = bound_rows(X, bound=1.0, how=rows, worst=worst)
    return Dataset(
        name=source.name,
        X=X,
        y=y,
        names=schema.feature_names,
        test=np.zeros(len(y), dtype=bool) if test is None else test,
        schema=schema,
        sha256=dict(source.sha256),
        licence=source.licence,
        place=place,
        scaling=scaling,
        rows=rows,
        _columns=columns,
    )
