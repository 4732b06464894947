"""Fields: what anybody may know of one column before seeing a cell of it; Number, Category, Date, Boolean."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ... import checks
from ...errors import DataError


@dataclass(frozen=True)
class Number:
    """A numeric column with a public range; values outside are moved to its nearer end.

    low becomes 0 (or -1 if `symmetric`) and high becomes 1; between them the scale is linear, or
    log(1 + value - low) if `log`, for columns where most of the values sit near low. A missing value
    stands for `fill`, if there is one: a usual value that everybody knows, not a mean taken from the rows.
    """

    name: str
    low: float
    high: float
    log: bool = False
    symmetric: bool = False
    fill: float | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        low, high = checks.real(f"{self.name}.low", self.low), checks.real(f"{self.name}.high", self.high)
        if not low < high:
            raise DataError(f"`{self.name}.high` must be above low = {low:g}; got {high:g}.")
        checks.real(f"{self.name}.high - {self.name}.low", high - low)
        for key in ("log", "symmetric"):
            if not isinstance(getattr(self, key), bool):
                raise DataError(f"`{self.name}.{key}` must be true or false.")
        if self.fill is not None:
            object.__setattr__(self, "fill", checks.real(f"{self.name}.fill", self.fill))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns this one becomes."""
        return (self.name,)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON or TOML."""
        entry: dict[str, Any] = {"name": self.name, "low": self.low, "high": self.high}
        entry |= {key: True for key in ("log", "symmetric") if getattr(self, key)}
        return entry if self.fill is None else entry | {"fill": self.fill}


@dataclass(frozen=True)
class Category:
    """A column that takes one of the declared values: one feature each, all 0 for any other value."""

    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not isinstance(self.values, list | tuple) or not all(isinstance(v, str) for v in self.values):
            raise DataError(f"`{self.name}.values` must be a list of strings.")
        values = tuple(self.values)
        if not values:
            raise DataError(f"`{self.name}.values` must hold at least one value; got none.")
        for value in values:
            if value != value.strip() or not value:
                raise DataError(f"`{self.name}.values` must not be blank or padded; got {value!r}.")
        if len(set(values)) != len(values):
            twice = sorted({value for value, times in Counter(values).items() if times > 1})
            raise DataError(f"`{self.name}.values` must differ; got {', '.join(twice)} twice.")
        object.__setattr__(self, "values", values)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns this one becomes."""
        return tuple(f"{self.name}={value}" for value in self.values)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON or TOML."""
        return {"name": self.name, "values": list(self.values)}


@dataclass(frozen=True)
class Date:
    """A column of dates within a public range; a day outside is moved to its nearer end.

    `first` becomes 0 and `last` becomes 1, linear in days. Cells may be dates, date-times (their day counts)
    or texts such as 2026-11-16.

    >>> Date("admitted", "2020-01-01", "2025-12-31").days
    2191
    """

    name: str
    first: str
    last: str

    def __post_init__(self) -> None:
        _check_name(self.name)
        first, last = _day(f"{self.name}.first", self.first), _day(f"{self.name}.last", self.last)
        if not first < last:
            raise DataError(f"`{self.name}.last` must be after first = {first}; got {last}.")
        object.__setattr__(self, "first", first.isoformat())
        object.__setattr__(self, "last", last.isoformat())

    @property
    def days(self) -> int:
        """From the first day to the last."""
        return dt.date.fromisoformat(self.last).toordinal() - self.start

    @property
    def start(self) -> int:
        """The first day, as Python counts days."""
        return dt.date.fromisoformat(self.first).toordinal()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns this one becomes."""
        return (self.name,)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON or TOML."""
        return {"name": self.name, "first": self.first, "last": self.last}


@dataclass(frozen=True)
class Boolean:
    """A column of yes or no, as 1 or 0: True, 1, yes, true, y, t in any case, or their opposites."""

    name: str

    def __post_init__(self) -> None:
        _check_name(self.name)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns this one becomes."""
        return (self.name,)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON or TOML."""
        return {"name": self.name, "kind": "boolean"}


Field = Number | Category | Date | Boolean
_KINDS: dict[str, type[Field]] = {"number": Number, "category": Category, "date": Date, "boolean": Boolean}
_NEEDS = {
    "number": {"name", "low", "high"},
    "category": {"name", "values"},
    "date": {"name", "first", "last"},
    "boolean": {"name"},
}
_MAY_HAVE = {"number": {"log", "symmetric", "fill"}}
_FORMS = "a number has name, low, high; a category name, values; a date name, first, last; a boolean kind"


def field_from_dict(k: int, entry: Any) -> Field:
    """The field that `to_dict` wrote, or that somebody typed; `k` is its place in the schema."""
    if not isinstance(entry, Mapping):
        raise DataError(f"`fields[{k}]` must be a table; got {type(entry).__name__}.")
    guess = "category" if "values" in entry else "date" if "first" in entry else "number"
    kind = checks.choice(f"fields[{k}].kind", entry.get("kind", guess), tuple(_KINDS))
    given = {key: value for key, value in entry.items() if key != "kind"}
    needs = _NEEDS[kind]
    missing, unknown = sorted(needs - set(given)), sorted(set(given) - needs - _MAY_HAVE.get(kind, set()))
    if missing or unknown:
        problem = (
            f"lacks {', '.join(missing)}" if missing else f"does not take {', '.join(map(str, unknown))}"
        )
        raise DataError(f"`fields[{k}]` {problem}; {_FORMS}.")
    return _KINDS[kind](**given)


def _day(name: str, value: Any) -> dt.date:
    """A day as a date, or as a text such as 2026-11-16."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    try:
        return dt.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise DataError(f"`{name}` must be a day such as 2026-11-16.") from None


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.strip():
        raise DataError("`name` of a column must be a word; got an empty one or another type.")
