"""Number, Category, Date and Boolean: the kinds of fields. A field states the public facts about a column."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from ...core import checks
from ...core.errors import DataError


@dataclass(frozen=True)
class Column:
    """The base class of all fields. It has the name of the column, and converts the field to a dictionary."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise DataError(f"`name` of a column must be a non-empty text; got {self.name!r}.")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features that the encoder makes from this column."""
        return (self.name,)

    def to_dict(self) -> dict[str, Any]:
        """The field as a dictionary for JSON or TOML; default values are left out."""
        entries = {one.name: getattr(self, one.name) for one in fields(self)}
        usual = {one.name: one.default for one in fields(self)}
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in entries.items()}
        return {key: value for key, value in plain.items() if value != usual[key]}

    def _set(self, **values: Any) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)


@dataclass(frozen=True)
class Number(Column):
    """A numeric column with a public range. Values outside the range are clipped to the range.

    `low` becomes 0 (or -1 if `symmetric`) and `high` becomes 1. The scale between them is linear. With `log`
    it is proportional to log(1 + value - low), for columns in which most values are near `low`. If `fill` is
    given, it replaces missing values. It must be a public typical value, not a mean computed from the rows.
    """

    low: float
    high: float
    log: bool = False
    symmetric: bool = False
    fill: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = checks.real(f"{self.name}.low", self.low), checks.real(f"{self.name}.high", self.high)
        if not low < high:
            raise DataError(f"`{self.name}.high` must be above low = {low:g}; got {high:g}.")
        checks.real(f"{self.name}.high - {self.name}.low", high - low)
        for key in ("log", "symmetric"):
            if not isinstance(given := getattr(self, key), bool):
                raise DataError(f"`{self.name}.{key}` must be true or false; got {given!r}.")
        fill = None if self.fill is None else checks.real(f"{self.name}.fill", self.fill)
        self._set(low=low, high=high, fill=fill)


@dataclass(frozen=True)
class Category(Column):
    """A column with one feature for each declared value. For an undeclared value, all features are 0."""

    values: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.values, list | tuple) or not all(isinstance(v, str) for v in self.values):
            raise DataError(f"`{self.name}.values` must be a list of strings; got {self.values!r}.")
        values = tuple(self.values)
        if not values:
            raise DataError(f"`{self.name}.values` must contain at least one value; it is empty.")
        for value in values:
            if value != value.strip() or not value:
                raise DataError(
                    f"`{self.name}.values` must be texts that are not empty and have no spaces at "
                    f"the ends; got {value!r}."
                )
        if twice := sorted({value for value, times in Counter(values).items() if times > 1}):
            raise DataError(f"`{self.name}.values` must be distinct; got {', '.join(twice)} twice.")
        self._set(values=values)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features that the encoder makes from this column."""
        return tuple(f"{self.name}={value}" for value in self.values)


@dataclass(frozen=True)
class Date(Column):
    """A column of dates with a public range. A date outside the range is clipped to the range.

    `first` becomes 0 and `last` becomes 1, linearly in days. Cells may be dates, date-times (the time of day
    is ignored) or texts such as 2026-11-16.

    >>> Date("admitted", "2020-01-01", "2025-12-31").days
    2191
    """

    first: str
    last: str

    def __post_init__(self) -> None:
        super().__post_init__()
        first, last = _day(f"{self.name}.first", self.first), _day(f"{self.name}.last", self.last)
        if not first < last:
            raise DataError(f"`{self.name}.last` must be after first = {first}; got {last}.")
        self._set(first=first.isoformat(), last=last.isoformat())

    @property
    def days(self) -> int:
        """The number of days from the first day to the last."""
        return dt.date.fromisoformat(self.last).toordinal() - self.start

    @property
    def start(self) -> int:
        """The first day as an ordinal (`datetime.date.toordinal`)."""
        return dt.date.fromisoformat(self.first).toordinal()


@dataclass(frozen=True)
class Boolean(Column):
    """A yes/no column, encoded as 1 or 0.

    Cells are 1, true, yes, y or t for yes, and 0, false, no, n or f for no, in upper or lower case.
    """

    def to_dict(self) -> dict[str, Any]:
        """The field as a dictionary for JSON or TOML."""
        return {"name": self.name, "kind": "boolean"}


Field = Number | Category | Date | Boolean
_KINDS: dict[str, type[Field]] = {"number": Number, "category": Category, "date": Date, "boolean": Boolean}
_FORMS = (
    "the keys of a number are name, low, high; of a category: name, values; of a date: name, first, last; "
    "of a boolean: name, kind"
)


def field_from_dict(k: int, entry: Any) -> Field:
    """The field that a dictionary describes; `k` is the position of the field in the schema."""
    if not isinstance(entry, Mapping):
        raise DataError(f"`fields[{k}]` must be a table; got {type(entry).__name__}.")
    guess = "category" if "values" in entry else "date" if "first" in entry else "number"
    kind = _KINDS[checks.choice(f"fields[{k}].kind", entry.get("kind", guess), tuple(_KINDS))]
    given = {key: value for key, value in entry.items() if key != "kind"}
    known = {one.name: one.default is MISSING for one in fields(kind)}
    if missing := sorted(name for name, needed in known.items() if needed and name not in given):
        raise DataError(f"`fields[{k}]` lacks {', '.join(missing)}; {_FORMS}.")
    if unknown := sorted(map(str, given.keys() - known.keys())):
        raise DataError(f"`fields[{k}]` has unknown keys ({', '.join(unknown)}); {_FORMS}.")
    return kind(**given)


def _day(name: str, value: Any) -> dt.date:
    """The day as a date; `value` is a date, or a text such as 2026-11-16."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    try:
        return dt.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise DataError(f"`{name}` must be a day such as 2026-11-16; got {value!r}.") from None
