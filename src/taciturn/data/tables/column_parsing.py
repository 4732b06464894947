"""Parse a column of a table: each cell becomes a float or NaN, or the index of its declared category.

The content of a cell never raises an error, because such an error would reveal something about the cell.
Errors depend only on the names, the number and the types of the columns.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError
from .column_types import Boolean, Category, Date, Field
from .schema import Schema
from .table_inputs import take_columns

_EPOCH = dt.date(1970, 1, 1).toordinal()
OTHER = -1  # a category that was not declared
MISSING = -2  # a missing value

_BLANKS = frozenset({"", "?", "na", "nan", "null", "none", "<na>"})

Parsed = dict[str, NDArray[Any]]
"""The parsed columns by name: float64 values (NaN if missing or unreadable), or int64 indices of categories
(also OTHER and MISSING)."""

_YES = frozenset({"1", "true", "yes", "y", "t"})
_NO = frozenset({"0", "false", "no", "n", "f"})
_EXACT = 2.0**53  # above this number, floats cannot represent every whole number
_WRONG_TYPE = {
    "M": "dates: declare a Date",
    "m": "durations: give them as numbers",
    "b": "True and False: declare a Boolean",
}


def parse(schema: Schema, table: Any, *, clip: bool = True) -> Parsed:
    """The parsed columns of the schema, from a data frame, a mapping, an array, or a list of rows."""
    raw = take_columns(schema.names, table)
    return {field.name: parse_column(field, raw[field.name], clip=clip) for field in schema}


def parse_column(field: Field, values: Sequence[Any] | NDArray[Any], *, clip: bool = True) -> NDArray[Any]:
    """Floats for a number, a date or a boolean; indices of the declared values for a category.

    clip : whether numbers are clipped to their range. Without clipping, a column of floats is not copied.
    """
    if isinstance(field, Category):
        return _places(field, values)
    if isinstance(field, Date):
        return _days(values)
    if isinstance(field, Boolean):
        return np.fromiter(map(_truth, values), dtype=np.float64, count=len(values))
    if isinstance(values, np.ndarray) and values.dtype.kind in _WRONG_TYPE:
        raise DataError(
            f"`{field.name}` is declared as Number, but its column contains {_WRONG_TYPE[values.dtype.kind]}."
        )
    floats = read_numbers(values)
    if clip:
        floats = np.clip(floats, field.low, field.high)  # also clips infinity to an end of the range
    return floats if field.fill is None else np.where(np.isnan(floats), field.fill, floats)


def _days(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.float64]:
    """Dates as ordinals (`datetime.date.toordinal`); NaN for cells that are not dates."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        days = values.astype("datetime64[D]").astype(np.int64).astype(np.float64) + _EPOCH
        return np.where(np.isnat(values), np.nan, days)
    return np.fromiter(map(_day, values), dtype=np.float64, count=len(values))


def _day(value: Any) -> float:
    if isinstance(value, np.datetime64):
        return float(_days(np.array([value]))[0])
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    try:
        if isinstance(value, str):
            value = dt.datetime.fromisoformat(value.strip())
        return float(value.toordinal()) if isinstance(value, dt.date) else math.nan
    except (ValueError, AttributeError):  # pandas' NaT is a date without an ordinal
        return math.nan


def _truth(value: Any) -> float:
    word = (_word(value) or "").lower()
    word = word if word in _YES | _NO else _retyped(word)  # treat the text "1.0" like the number 1.0
    return 1.0 if word in _YES else 0.0 if word in _NO else math.nan


def read_numbers(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.float64]:
    """The cells as floats; NaN for cells that are not numeric."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        with np.errstate(over="ignore"):  # a long double may exceed the largest float64
            floats = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    else:
        floats = np.fromiter(map(read_number, values), dtype=np.float64, count=len(values))
    return floats


def read_number(value: Any) -> float:
    """The cell as a float; NaN for a cell that is not numeric."""
    if type(value) is str:  # tested first, since a large file has millions of texts
        try:
            return float(value)
        except ValueError:
            return math.nan
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str | numbers.Real | decimal.Decimal):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number or a fraction beyond the largest float
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]
    except (ValueError, ArithmeticError):
        return math.nan


def _places(field: Category, values: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
    """The index of every cell's category, OTHER or MISSING."""
    place = _place_of(field)
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        raise DataError(
            f"`{field.name}` is declared as Category, but its column contains dates or times; read the "
            "column as text, with dtype=str."
        )
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        _check_survival(field, values.dtype)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and not np.ma.isMaskedArray(values):
        distinct, inverse = np.unique(values, return_inverse=True)
        return np.array([place(value) for value in distinct.tolist()], dtype=np.int64)[inverse]
    return np.fromiter(map(place, values), dtype=np.int64, count=len(values))


def _place_of(field: Category) -> Callable[[Any], int]:
    """A function that maps a cell to the index of its category, OTHER or MISSING."""
    index = {value: k for k, value in enumerate(field.values)}

    def place(value: Any) -> int:
        if type(value) is str and value in index:
            return index[value]
        word = _word(value)
        if word is None:
            return MISSING
        if word not in index and word.lower() in _BLANKS:
            return MISSING
        if isinstance(value, bool | np.bool_) and word not in index:
            word = word.lower()  # the boolean True also matches the category "true"
        return index.get(word, index.get(_retyped(word), OTHER))

    return place


def _check_survival(field: Category, dtype: np.dtype[Any]) -> None:
    """Raise an error if a column of this type would change the text of a category.

    A reader that guesses types, such as `pandas.read_csv`, turns "01" into 1 if all cells of the column are
    numbers. So a single cell could change the category of every row.
    """
    for word in field.values:
        held = _held(word)
        if held != word and _is_truth(word) == (dtype.kind == "b"):
            how = "may not store exactly" if held is None else f"stores as {held!r}"
            raise DataError(
                f"`{field.name}` has the category {word!r}, which a column of type {dtype} {how}; "
                "read the column as text, with dtype=str."
            )


def _held(word: str) -> str | None:
    """The text of a category after it was stored in a column of numbers or booleans.

    Return None for a whole number that floats may not represent exactly, because a column of whole numbers
    with a missing cell is stored as floats.
    """
    held = _retyped(word)
    number = math.nan if _is_truth(word) else read_number(held)
    return None if abs(number) >= _EXACT else held


def _retyped(word: str) -> str:
    """The text of a cell whose column was read as numbers or booleans: "01" becomes "1"."""
    if _is_truth(word):
        return word.capitalize()
    for read in (int, float):
        try:
            return _word(read(word)) or word
        except ValueError:
            continue
    return word


def _is_truth(word: str) -> bool:
    return word.lower() in ("true", "false")


def is_blank(value: Any) -> bool:
    """Whether a cell stands for a missing value."""
    word = _word(value)
    if word is not None:
        return word.lower() in _BLANKS
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # pandas' NA, an array, a signaling NaN
        return True


def _word(value: Any) -> str | None:
    """The value as the text of a category: 3.0 is "3", True is "True". None for a value without a text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, decimal.Decimal):
        value = read_number(value)
    if not isinstance(value, bool | int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    try:
        return str(int(value) if isinstance(value, float) and value.is_integer() else value)
    except ValueError:  # an int of thousands of digits
        return None
