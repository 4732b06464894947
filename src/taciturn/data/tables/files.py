"""Tables from CSV and Parquet files as columns; errors name the file, the line and the column, never a cell.

Nor do they list the columns that a file has: without a header its first line is a record.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import checks
from ...errors import DataError, MissingExtra

Columns = dict[str, Sequence[Any]]

SUFFIXES = (".csv", ".parquet")
_COMMA_NUMBER = re.compile(r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)?(,\d*)?([eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class CsvForm:
    """How a CSV file is written. A cell that is a number written with `decimal` is read as that number."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        checks.choice("csv.separator", self.separator, (",", ";", "\t", "|"))
        checks.choice("csv.decimal", self.decimal, (".", ","))
        if self.separator == self.decimal:
            raise DataError(f"`csv.decimal` must differ from `csv.separator`; got {self.decimal!r} for both.")
        try:
            codecs.lookup(self.encoding)
        except (LookupError, TypeError):
            raise DataError(f"`csv.encoding` must be a text encoding; got {self.encoding!r}.") from None


def read_table(path: Path, needed: Sequence[str], form: CsvForm | None = None) -> Columns:
    """The columns of a file, with at least those that are needed; a row of another length has no values."""
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise DataError(f"{path}: a table must end in {' or '.join(SUFFIXES)}.")
    try:
        columns = _from_csv(path, form or CsvForm()) if kind == ".csv" else _from_parquet(path)
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


def _from_csv(path: Path, form: CsvForm) -> Columns:
    _check_text(path, form)
    encoding = "utf-8-sig" if codecs.lookup(form.encoding).name == "utf-8" else form.encoding
    with path.open(newline="", encoding=encoding, errors="replace") as file:
        # strict, or an open quote swallows rows, and their number is public
        lines = csv.reader(file, strict=True, delimiter=form.separator)
        try:
            names = [name.strip() for name in next(lines, [])]
            rows: list[list[Any]] = [
                row if len(row) == len(names) else [None] * len(names) for row in lines if row
            ]
        except csv.Error as error:
            raise DataError(f"{path}, line {lines.line_num}: is not CSV; is a quote left open?") from error
    if not names or len(set(names)) < len(names):
        raise DataError(f"{path}, line 1: the first line must hold the names of the columns, each once.")
    if form.decimal == ",":
        rows = [[_with_point(cell) for cell in row] for row in rows]
    return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {name: () for name in names}


def _with_point(cell: str | None) -> str | None:
    """1.234,5 -> 1234.5; anything else as it is."""
    if cell is None or not _COMMA_NUMBER.fullmatch(cell):
        return cell
    return cell.replace(".", "").replace(",", ".")


def _check_text(path: Path, form: CsvForm) -> None:
    """What programs for spreadsheets like to write, by the first line; its words stay out of the message."""
    with path.open("rb") as file:
        first = file.readline(2**16)
    if first.startswith((b"\xff\xfe", b"\xfe\xff")) and codecs.lookup(form.encoding).name == "utf-8":
        raise DataError(f'{path}: is UTF-16; save it as CSV in UTF-8, or say csv.encoding = "utf-16".')
    if not first.strip():
        raise DataError(f"{path}, line 1: is empty; it must hold the names of the columns.")
    for sign, name, written in ((b";", "semicolons", ";"), (b"\t", "tabs", "\\t"), (b"|", "bars", "|")):
        if sign in first and b"," not in first and form.separator == ",":
            raise DataError(
                f'{path}, line 1: is separated by {name}; say csv.separator = "{written}", or use commas.'
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
