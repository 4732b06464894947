"""Encode raw rows as a `Dataset`, with a schema that ships with the package or with the paper's scaling."""

from __future__ import annotations

import json
import math
import warnings
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import checks
from ...core.errors import PrivacyLeakWarning
from ..tables.column_parsing import parse
from ..tables.column_types import Number
from ..tables.encoder import bound_rows, encode
from ..tables.schema import Schema
from .dataset import Dataset
from .fetch import Source

SCALINGS = ("paper", "public")
ROWS = ("clip", "scale", "raw")


def shipped_schema(name: str) -> Schema:
    """The schema of a data set that `taciturn` can load.

    The ranges are round numbers. People who had seen these well-known data chose them. That is fine for a
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
