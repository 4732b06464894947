"""Take columns from a table: a data frame, a mapping, an array, or a list of rows.

Data frames of pandas, polars and pyarrow are supported. None of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError


def take_columns(names: tuple[str, ...], table: Any) -> dict[str, Any]:
    """The columns `names`, with unchanged cells. Errors depend only on names, types and shapes."""
    raw = _columns(table, names)
    for name, values in raw.items():
        if isinstance(values, np.ndarray) and values.ndim != 1:
            raise DataError(
                f"`X` must have one cell per row; column `{name}` has {values.ndim} dimension(s)."
            )
    lengths = {len(values) for values in raw.values()}
    if len(lengths) != 1:
        raise DataError(f"`X` must have columns of the same length; got {len(lengths)} different lengths.")
    if lengths == {0}:
        raise DataError("`X` must have a minimum of 1 row; got 0 sample(s) (0 rows).")
    return raw


def _columns(table: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if hasattr(table, "toarray"):
        raise DataError("`X` must be dense; got a sparse matrix. Convert it with .toarray().")
    if isinstance(table, np.ndarray):
        return _by_position(table, names) if table.dtype.names is None else _by_name(table, names)
    if isinstance(table, Sequence) and not isinstance(table, str | bytes):
        cells = [_row(row, names) for row in table] or [[]]
        return (
            dict(zip(names, zip(*cells, strict=True), strict=True)) if cells[0] else dict.fromkeys(names, ())
        )
    if hasattr(table, "__array__") and not hasattr(table, "columns"):
        return _columns(np.asarray(table), names)
    return _by_name(table, names)


def _by_name(table: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Columns from a data frame, a mapping or a structured array."""
    if isinstance(table, np.ndarray):
        known: Iterable[Any] | None = table.dtype.names
    elif isinstance(table, Mapping):
        known = table.keys()
    else:
        known = getattr(table, "column_names" if hasattr(table, "column_names") else "columns", None)
    if known is None:
        raise DataError(f"`X` must be a table or a list of rows; got {type(table).__name__}.")
    listed = list(known)
    absent = [name for name in names if listed.count(name) != 1]
    if absent:
        raise DataError(f"`X` must have each required column once; missing or repeated: {', '.join(absent)}.")
    return {name: _array(table[name]) for name in names}


def _array(column: Any) -> Any:
    """The cells of a column. A value that is not a column, such as a number, becomes a 0-D array."""
    if isinstance(column, np.ndarray | list | tuple):
        return column
    if isinstance(column, Iterable) and not (isinstance(column, str | bytes) or hasattr(column, "to_numpy")):
        return list(column)
    return np.asarray(column)


def _by_position(table: NDArray[Any], names: tuple[str, ...]) -> dict[str, Any]:
    if table.ndim != 2:
        raise DataError(f"`X` must be two-dimensional; got {table.ndim} dimension(s). Reshape your data.")
    if table.shape[1] != len(names):
        raise DataError(f"`X` must have the schema's {len(names)} columns; got {table.shape[1]} feature(s).")
    if table.dtype.kind == "c":
        raise DataError("`X` must contain real numbers or texts. Complex data not supported.")
    return {name: table[:, k] for k, name in enumerate(names)}


def _row(row: Any, names: tuple[str, ...]) -> Sequence[Any]:
    """The cells of a row in the order of `names`. If the length is wrong, all values are missing."""
    if isinstance(row, Mapping):
        return [row.get(name) for name in names]
    listed = isinstance(row, np.ndarray) and row.ndim == 1
    listed = listed or (isinstance(row, Sequence) and not isinstance(row, str | bytes))
    return list(row) if listed and len(row) == len(names) else [None] * len(names)
