"""Tables from CSV and Parquet files as columns; errors name the file, the line and the column, never a cell.

Nor do they list the columns that a file has: without a header its first line is a record.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import DataError, MissingExtra

Columns = dict[str, Sequence[Any]]

SUFFIXES = (".csv", ".parquet")


def read_table(path: Path, needed: Sequence[str]) -> Columns:
    """The columns of a file, with at least those that are needed; a row of another length has no values."""
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise DataError(f"{path}: a table must end in {' or '.join(SUFFIXES)}.")
    try:
        columns = _from_csv(path) if kind == ".csv" else _from_parquet(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or 'no such table'}).") from error
    absent = [name for name in needed if name not in columns]
    if absent:
        place = f"{path}, line 1" if kind == ".csv" else path
        raise DataError(
            f"{place}: lacks the column{'s' * (len(absent) > 1)} {', '.join(absent)}. "
            "Names are compared to the letter; columns that nobody needs may stay."
        )
    if not columns or not len(next(iter(columns.values()))):
        raise DataError(f"{path}: holds no rows.")
    return columns


def _from_csv(path: Path) -> Columns:
    _check_text(path)
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = csv.reader(file, strict=True)  # or an open quote swallows rows, and their number is public
        try:
            names = [name.strip() for name in next(lines, [])]
            rows: list[list[Any]] = [
                row if len(row) == len(names) else [None] * len(names) for row in lines if row
            ]
        except csv.Error as error:
            raise DataError(f"{path}, line {lines.line_num}: is not CSV; is a quote left open?") from error
    if not names or len(set(names)) < len(names):
        raise DataError(f"{path}, line 1: the first line must hold the names of the columns, each once.")
    return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {name: () for name in names}


def _check_text(path: Path) -> None:
    """What programs for spreadsheets like to write, by the first line; its words stay out of the message."""
    with path.open("rb") as file:
        first = file.readline(2**16)
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path}: is UTF-16; save it as CSV in UTF-8.")
    if not first.strip():
        raise DataError(f"{path}, line 1: is empty; it must hold the names of the columns.")
    for sign, name in ((b";", "semicolons"), (b"\t", "tabs")):
        if sign in first and b"," not in first:
            raise DataError(
                f"{path}, line 1: is separated by {name}; save it with commas, and a point in 1.5."
            )


def _from_parquet(path: Path) -> Columns:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "tables") from error
    try:
        with parquet.ParquetFile(path) as file:
            table = file.read()
    except ArrowInvalid as error:
        raise DataError(f"{path}: is no Parquet file; a text table must end in .csv.") from error
    if len(set(table.column_names)) < len(table.column_names):
        raise DataError(f"{path}: must have each of its columns once.")
    return {name: table[name].to_pylist() for name in table.column_names}
