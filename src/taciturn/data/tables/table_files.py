"""Read tables from CSV and Parquet files. Errors name the file, the line and the column, but quote no cell.

Errors do not list the columns of a file either, because in a file without a header the first line is a
record.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import checks
from ...core.errors import DataError, MissingExtra
from .column_parsing import read_numbers

Columns = dict[str, Sequence[Any]]

SUFFIXES = (".csv", ".parquet")
_BLOCK = 256  # lines of a CSV file that are read at once; their cells fit into the CPU cache
_LARGE = 2**22  # larger CSV files are parsed by Arrow; for smaller files, loading Arrow takes too long
_LINE_BREAK = ord("\n")
_WIDE = {  # the byte order marks; UTF-32 comes first, because its mark can begin with a mark of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_COMMA_NUMBER = re.compile(r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)?(,\d*)?([eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class CsvForm:
    """The format of a CSV file: the separator of cells, the decimal sign of numbers, and the encoding.

    prefix : how messages name these settings: "csv." for the keys of a file, "--" for the options of a
        command.
    """

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    prefix: str = "csv."

    def __post_init__(self) -> None:
        checks.choice(f"{self.prefix}separator", self.separator, (",", ";", "\t", "|"))
        checks.choice(f"{self.prefix}decimal", self.decimal, (".", ","))
        if self.separator == self.decimal:
            raise DataError(
                f"`{self.prefix}decimal` must differ from `{self.prefix}separator`; got {self.decimal!r} "
                "for both."
            )
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=self.encoding)
        except (LookupError, TypeError, ValueError):
            raise DataError(
                f"`{self.prefix}encoding` must be a text encoding; got {self.encoding!r}."
            ) from None

    def setting(self, name: str, value: str) -> str:
        """A setting as a user writes it: `csv.separator = ";"` in a file, `--separator ';'` as an option."""
        if self.prefix == "--":
            return f"--{name} {'$' if value.startswith(chr(92)) else ''}'{value}'"
        return f'{self.prefix}{name} = "{value}"'


def read_table(
    path: Path, needed: Sequence[str], form: CsvForm | None = None, numbers: Collection[str] = ()
) -> Columns:
    """The needed columns of a file. In a row with too many or too few cells, all values are missing.

    numbers : columns that are needed only as numbers. In a CSV file they are read as floats, to save memory.
    """
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise DataError(f"{path}: the name of a table must end in {' or '.join(SUFFIXES)}.")
    form = form or CsvForm()
    with _readable(path, form), unchanged(path):
        if kind == ".csv":
            columns = _from_csv(path, form, set(needed), set(numbers))
        else:
            columns = _from_parquet(path, set(needed))
        return check_columns(columns, needed, f"line 1 of {path}" if kind == ".csv" else str(path))


def column_names(path: Path, form: CsvForm | None = None) -> tuple[str, ...]:
    """The names of a file's columns, without reading its rows."""
    form = form or CsvForm()
    with _readable(path, form):
        if path.suffix.lower() == ".parquet":
            return tuple(_parquet().read_schema(path).names)
        with path.open(newline="", encoding=_encoding(form), errors="replace") as file:
            return _names(next(csv.reader(file, delimiter=form.separator), []))


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Raise an error if the file changes inside the block: the rows could be a mixture of two versions."""

    def version() -> tuple[int, ...]:
        try:
            found = path.stat()
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror}).") from error
        return found.st_ino, found.st_size, found.st_mtime_ns

    before = version()
    try:
        yield
    finally:
        if version() != before:
            raise DataError(
                f"{path} changed while it was read; run again when no program writes to the file."
            )


@contextmanager
def _readable(path: Path, form: CsvForm) -> Iterator[None]:
    """Turn errors of the file system, the codec and the parser into a one-line error that quotes no cell."""
    try:
        yield
    except OSError as error:
        what = os.strerror(error.errno) if error.errno else "the file is incomplete; write it again"
        raise DataError(f"{path} cannot be read ({what}).") from error
    except DataError:
        raise
    except UnicodeError as error:
        raise DataError(
            f"{path} is not text in {form.encoding!r}; set {form.prefix}encoding to the file's encoding."
        ) from error
    except csv.Error as error:
        raise DataError(f"line 1 of {path} is not CSV; is a quote left open?") from error
    except ValueError as error:  # from Arrow
        raise DataError(
            f"{path} is not a complete Parquet file. Write it again; if it is a text table, its name must "
            "end in .csv."
        ) from error


def check_columns(columns: Columns, needed: Sequence[str], place: str) -> Columns:
    """Return the columns; raise an error if a needed column is missing or if the table has no rows."""
    absent = [name for name in needed if name not in columns]
    if absent:
        raise DataError(
            f"{place} lacks the column{'s' * (len(absent) > 1)} {', '.join(absent)}. "
            "Names must match exactly; other columns are ignored."
        )
    if not columns or not len(next(iter(columns.values()))):
        raise DataError(f"{place.removeprefix('line 1 of ')} has no rows; is this the right file?")
    return columns


def _from_csv(path: Path, form: CsvForm, needed: Collection[str], numbers: Collection[str]) -> Columns:
    _check_text(path, form)
    with path.open(newline="", encoding=_encoding(form), errors="replace") as file:
        # without `strict`, an open quote would swallow rows and change the number of rows, which is public
        lines = csv.reader(file, strict=True, delimiter=form.separator)
        try:
            names = _names(next(lines, []))
            given = [name for name in names if name]  # spreadsheets often append empty cells to a line
            if not given or len(set(given)) < len(given):
                raise DataError(f"line 1 of {path} must contain the names of the columns, each once.")
            places = {name: k for k, name in enumerate(names) if name in needed}
            numeric = [name for name in places if name in numbers]
            found: dict[str, Any] = {name: array("d") if name in numbers else [] for name in places}
            arrow = _arrow() if path.stat().st_size > _LARGE else None
            while block := list(islice(lines, _BLOCK)):
                columns = list(zip(*_rows(block, len(names), form), strict=True)) or [()] * len(names)
                for name in places.keys() - numbers:
                    found[name].extend(columns[places[name]])
                floats = _numbers([columns[places[name]] for name in numeric], arrow)
                for name, values in zip(numeric, floats, strict=True):
                    found[name].frombytes(values.tobytes())
        except csv.Error as error:
            raise DataError(f"line {lines.line_num} of {path} is not CSV; is a quote left open?") from error
    return found | {name: np.array(found[name]) for name in numeric}


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        return None
    return pyarrow


def _numbers(columns: Sequence[Sequence[str | None]], arrow: Any) -> list[NDArray[np.float64]]:
    """The columns as floats. Arrow is much faster than `float`, and gives the same numbers or an error."""
    cells: list[Any] = list(chain.from_iterable(columns))
    try:
        text = np.frombuffer(("\n".join(cells) + "\n").encode("ascii"), dtype=np.uint8)
        breaks = np.flatnonzero(text == _LINE_BREAK)
        if len(breaks) != len(cells):  # a cell contains a line break
            raise ValueError
        ends = np.zeros(len(cells) + 1, dtype=np.int32)
        ends[1:] = breaks - np.arange(len(cells))
        # built from bytes, because `arrow.array` would load pandas
        given = arrow.py_buffer(ends), arrow.py_buffer(text[text != _LINE_BREAK])
        texts = arrow.StringArray.from_buffers(len(cells), *given)
        size = len(columns[0]) if columns else 0
        return list(_floats(texts.cast(arrow.float64())).reshape(len(columns), size))
    except (AttributeError, TypeError, ValueError):  # no Arrow, or a cell that Arrow cannot read
        if arrow is None or len(columns) == 1:
            return [read_numbers(column) for column in columns]
        return [one for column in columns for one in _numbers([column], arrow)]


def _names(first: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.removeprefix("\ufeff").strip() for name in first)


def _rows(block: list[list[str]], width: int, form: CsvForm) -> list[list[Any]]:
    """The lines as rows, without empty lines. A line with too many or too few cells becomes a row of None."""
    rows: list[list[Any]] = [row if len(row) == width else [None] * width for row in block if row]
    return [[_with_point(cell) for cell in row] for row in rows] if form.decimal == "," else rows


def _encoding(form: CsvForm) -> str:
    return "utf-8-sig" if codecs.lookup(form.encoding).name == "utf-8" else form.encoding


def _with_point(cell: str | None) -> str | None:
    """A number with a decimal comma gets a point: 1.234,5 -> 1234.5. Other texts stay unchanged."""
    if cell is None or not _COMMA_NUMBER.fullmatch(cell):
        return cell
    return cell.replace(".", "").replace(",", ".")


def _check_text(path: Path, form: CsvForm) -> None:
    """Raise an error if the first line does not fit the format `form`. The error does not quote the line."""
    with path.open("rb") as file:
        first = file.readline(2**16)
    if first.startswith(tuple(_WIDE)) and codecs.lookup(form.encoding).name == "utf-8":
        found = next(name for mark, name in _WIDE.items() if first.startswith(mark))
        raise DataError(
            f"{path} is {found.upper()}; save it as CSV in UTF-8, or set {form.setting('encoding', found)}."
        )
    if first.startswith(codecs.BOM_UTF8) and _encoding(form) != "utf-8-sig":
        raise DataError(
            f"{path} is a UTF-8 file, but {form.prefix}encoding says {form.encoding!r}: leave out "
            f"{form.prefix}encoding."
        )
    if not first.removeprefix(codecs.BOM_UTF8).strip():
        raise DataError(f"line 1 of {path} is empty; it must contain the names of the columns.")
    for sign, name, written in ((b";", "semicolons", ";"), (b"\t", "tabs", "\\t"), (b"|", "bars", "|")):
        if sign in first and b"," not in first and form.separator == ",":
            raise DataError(
                f"the columns in {path} are separated by {name}; set {form.setting('separator', written)}, "
                "or use commas."
            )


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "tables") from error
    return parquet


def _from_parquet(path: Path, needed: Collection[str]) -> Columns:
    with _parquet().ParquetFile(path) as file:
        names = file.schema_arrow.names
        if len(set(names)) < len(names):
            raise DataError(f"{path} has two columns with the same name.")
        return {name: _cells(file.read(columns=[name]).column(0)) for name in names if name in needed}


def _cells(column: Any) -> Any:
    """A numeric column as an array, to save memory; any other column as a list of Python objects."""
    from pyarrow import types

    kind = column.type
    if types.is_float64(kind) or types.is_float32(kind):
        return np.concatenate([np.empty(0), *map(_floats, column.chunks)])
    if types.is_integer(kind) and not column.null_count:
        return column.to_numpy()
    return column.to_numpy() if types.is_floating(kind) else [_object(cell) for cell in column]


def _object(cell: Any) -> Any:
    """The cell as a Python object; None for a date or time outside the years 1 to 9999."""
    try:
        return cell.as_py()
    except OverflowError:
        return None


def _floats(chunk: Any) -> NDArray[np.float64]:
    """A piece of a column as floats, NaN if missing, from raw bytes: `to_numpy` would load pandas."""
    lost, data = chunk.buffers()
    ends = slice(chunk.offset, chunk.offset + len(chunk))
    found = np.frombuffer(data, dtype=f"f{chunk.type.bit_width // 8}")[ends].astype(np.float64)
    if chunk.null_count:
        bits = np.unpackbits(np.frombuffer(lost, dtype=np.uint8), bitorder="little")
        found[bits[ends] == 0] = np.nan
    return found
