"""Schema: the public facts about the columns of a table, known before any row is read.

Ranges and categories come from a codebook, a law or a form, never from the rows. A range that was computed
from the rows reveals something about them, and no certificate covers this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...core.errors import DataError
from .column_types import Boolean, Category, Field, Number, field_from_dict


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a table, in order, with their public ranges and categories.

    >>> from taciturn.data import Category, Number
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
            if not isinstance(field, Field):
                raise DataError(
                    f"`fields` must contain Number, Category, Date or Boolean; got {type(field).__name__}."
                )
        names = [field.name for field in fields]
        if not names:
            raise DataError("`fields` must contain at least one column; it is empty.")
        twice = sorted({name for name, times in Counter(names).items() if times > 1})
        if twice:
            raise DataError(f"`fields` must have different names; got {', '.join(twice)} twice.")
        object.__setattr__(self, "fields", fields)

    @classmethod
    def of(cls, **columns: Any) -> Schema:
        """A schema in one line: (low, high) for a number, a list of texts, bool for yes/no, or a field.

        >>> Schema.of(age=(0, 110), ward=["medical", "surgical"], smoker=bool).feature_names
        ('age', 'ward=medical', 'ward=surgical', 'smoker')
        """
        return cls(tuple(_field(name, public) for name, public in columns.items()))

    def __repr__(self) -> str:
        return f"Schema({len(self.fields)} columns, {len(self.feature_names)} features)"

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the table."""
        return tuple(field.name for field in self.fields)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the encoded columns: `name`, or `name=value` for each value of a category."""
        return tuple(name for field in self.fields for name in field.feature_names)

    def with_ranges(self, ranges: Mapping[str, tuple[float, float]]) -> Schema:
        """A copy of the schema in which the numeric columns in `ranges` have new ranges (low, high)."""
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
        """A dictionary for JSON or TOML: {"fields": [{"name", "low", "high"}, {"name", "values"}, ...]}."""
        return {"fields": [field.to_dict() for field in self.fields]}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Schema:
        """The schema that a dictionary describes, in the form that `to_dict` returns."""
        if not isinstance(entry, Mapping) or set(entry) != {"fields"}:
            raise DataError("a schema must be a table with the single key `fields`.")
        if not isinstance(entry["fields"], list | tuple):
            raise DataError("`fields` must be a list of columns.")
        return cls(tuple(field_from_dict(k, field) for k, field in enumerate(entry["fields"])))


def public_columns(given: Any) -> Schema:
    """The schema for a `Schema`, its dictionary, or its short form {"age": (0, 110), "smoker": bool}."""
    if isinstance(given, Schema):
        return given
    if not isinstance(given, Mapping) or not given:
        raise DataError(
            "`schema` must give the public facts about each column: a `taciturn.data.Schema`, or a short "
            'form such as {"age": (0, 110), "ward": ["medical", "surgical"], "smoker": bool}.'
        )
    if set(given) == {"fields"}:
        return Schema.from_dict(given)
    return Schema(tuple(_field(name, public) for name, public in given.items()))


def _field(name: str, public: Any) -> Field:
    """The field for a short description of a column."""
    if isinstance(public, Field):
        if public.name != name:
            raise DataError(f"`name` of the field for column {name!r} must be {name!r}; got {public.name!r}.")
        return public
    if public is bool:
        return Boolean(name)
    listed = list(public) if isinstance(public, list | tuple) else []
    if listed and all(isinstance(one, str) for one in listed):
        return Category(name, tuple(listed))
    if len(listed) == 2:
        return Number(name, *listed)
    raise DataError(
        f"`{name}` must be (low, high), a list of texts such as ['1', '2', '3'], bool or a field; "
        f"got {public!r}."
    )
