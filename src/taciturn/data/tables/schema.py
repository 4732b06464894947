"""Schema: what anybody may know about a table before seeing a row of it.

Ranges and categories come from a codebook, a law or a form, never from the rows: a range read off the data
is a release that no certificate covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
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
            twice = sorted({value for value in values if values.count(value) > 1})
            raise DataError(f"`{self.name}.values` must differ; got {', '.join(twice)} twice.")
        object.__setattr__(self, "values", values)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns this one becomes."""
        return tuple(f"{self.name}={value}" for value in self.values)


Field = Number | Category


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a table, in order, with their public ranges and categories.

    >>> schema = Schema((Number("age", 0, 100), Category("sex", ("female", "male"))))
    >>> schema.feature_names
    ('age', 'sex=female', 'sex=male')
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        fields = tuple(self.fields)
        for field in fields:
            if not isinstance(field, Number | Category):
                raise DataError(f"`fields` must hold Number and Category; got {type(field).__name__}.")
        names = [field.name for field in fields]
        if not names:
            raise DataError("`fields` must hold at least one column; got none.")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DataError(f"`fields` must have different names; got {', '.join(twice)} twice.")
        object.__setattr__(self, "fields", fields)

    def __repr__(self) -> str:
        return f"Schema({len(self.fields)} columns, {len(self.feature_names)} features)"

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table."""
        return tuple(field.name for field in self.fields)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of the encoded table: a number's own name, then `name=value` for each category."""
        return tuple(name for field in self.fields for name in field.feature_names)

    def with_ranges(self, ranges: Mapping[str, tuple[float, float]]) -> Schema:
        """The same schema with other ranges for some of its numbers."""
        unknown = set(ranges) - {field.name for field in self.fields if isinstance(field, Number)}
        if unknown:
            raise DataError(f"`ranges` must name numeric columns; got {', '.join(sorted(unknown))}.")
        return Schema(
            tuple(
                replace(field, low=ranges[field.name][0], high=ranges[field.name][1])
                if isinstance(field, Number) and field.name in ranges
                else field
                for field in self.fields
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON or TOML: {"fields": [{"name", "low", "high"}, {"name", "values"}, ...]}"""
        return {"fields": [_field_to_dict(field) for field in self.fields]}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` wrote, or that somebody typed."""
        if not isinstance(entry, Mapping) or set(entry) != {"fields"}:
            raise DataError("a schema must be a table with the single key `fields`.")
        if not isinstance(entry["fields"], list | tuple):
            raise DataError("`fields` must be a list of columns.")
        return cls(tuple(_field_from_dict(k, field) for k, field in enumerate(entry["fields"])))


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.strip():
        raise DataError("`name` of a column must be a word; got an empty one or another type.")


def _field_to_dict(field: Field) -> dict[str, Any]:
    if isinstance(field, Category):
        return {"name": field.name, "values": list(field.values)}
    entry: dict[str, Any] = {"name": field.name, "low": field.low, "high": field.high}
    entry |= {key: True for key in ("log", "symmetric") if getattr(field, key)}
    return entry if field.fill is None else entry | {"fill": field.fill}


def _field_from_dict(k: int, entry: Any) -> Field:
    if not isinstance(entry, Mapping):
        raise DataError(f"`fields[{k}]` must be a table; got {type(entry).__name__}.")
    kind: type[Field] = Category if "values" in entry else Number
    needs = {"name", "values"} if kind is Category else {"name", "low", "high"}
    allows = needs if kind is Category else needs | {"log", "symmetric", "fill"}
    missing, unknown = sorted(needs - set(entry)), sorted(set(entry) - allows)
    if missing or unknown:
        problem = (
            f"lacks {', '.join(missing)}" if missing else f"does not take {', '.join(map(str, unknown))}"
        )
        raise DataError(
            f"`fields[{k}]` {problem}; a number has name, low, high, a category has name, values."
        )
    return kind(**entry)
