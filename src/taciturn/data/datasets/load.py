"""Raw rows -> Dataset: encoded by a schema that ships with the package, or as the paper does it."""

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

    Its ranges are round numbers set by people who had seen these well-known data: good for a benchmark, not a
    pattern for a private table, whose ranges must come from elsewhere.
    """
    text = resources.files(__package__).joinpath("schemas", f"{name}.json").read_text("utf-8")
    return Schema.from_dict(json.loads(text))


def check_choices(rows: str, scaling: str = "public") -> None:
    """Before anything is fetched: are these words that `as_dataset` knows?"""
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
    """Encode a table by the shipped schema; `scaling` and `rows` are those of `load_adult`."""
    schema = shipped_schema(source.name)
    columns = parse(schema, table)
    if scaling == "paper":
        warnings.warn(
            "`scaling` = 'paper' divides each column by its largest value, which is not private; 'public' "
            "does not use the data.",
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
