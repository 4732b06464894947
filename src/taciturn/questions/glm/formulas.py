"""Formulas: turn "death ~ age + C(sex) + age:bmi" and a schema into columns with public ranges.

The package formulaic parses the text. A term is a product of factors, and a factor is the name of a column,
C(name), or `site`. No part of the text is evaluated, so a formula from another party's job cannot run code.
Categories and ranges come from the schema alone. The first value of a category, and the first site, is the
reference level, which gets no column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import MissingExtra, ParameterError
from ...core.types import Array
from ...data.tables.column_types import Boolean, Category, Date, Field, Number
from ...data.tables.schema import Schema

SITE = "site"
_MOST_FACTORS, _OPERATOR = 6, re.compile(r"[*:/|]|%in%")
_FACTOR = re.compile(r"^(?:C\(\s*)?([^()]+?)(?:\s*\))?$")


class FormulaPart(NamedTuple):
    """One numeric column that is computed for a factor of a term, with its range.

    source : the column of the table from which the part is computed, or "site".
    place : for a category or the site, the number of the value (or site) for which the part is 1; the part is
        0 for all other values. None if the part is not made from a category or the site.
    gap : True if the part is 1 for a missing cell, and 0 for other cells.
    """

    name: str
    low: float
    high: float
    source: str
    place: int | None = None
    gap: bool = False


@dataclass(frozen=True)
class Formula:
    """The columns of a regression. Each column is the product of one or more parts.

    left : the column of the outcome, or the columns of time and event.
    outcome : the public range of the outcome.
    fields : all columns of the table that the formula uses.
    indicators : columns of the table that may have missing cells. For each of them, the regression has an
        additional column, which is 1 where the cell is missing. A row with a missing cell in any other column
        is left out.
    """

    left: tuple[str, ...]
    outcome: tuple[float, float]
    columns: tuple[tuple[FormulaPart, ...], ...]
    fields: tuple[Field, ...]
    indicators: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(":".join(part.name for part in column) for column in self.columns)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """The range of every product, from the ranges of its parts."""
        found = []
        for column in self.columns:
            low, high = 1.0, 1.0
            for part in column:
                ends = (low * part.low, low * part.high, high * part.low, high * part.high)
                low, high = min(ends), max(ends)
            found.append((low, high))
        return tuple(found)

    def expected(self, spreads: Sequence[float] | None) -> tuple[Array, Array]:
        """(standard deviations, correlations) of the columns, assuming that the parts are independent.

        The mean of a part is assumed to be the middle of its range. `spreads` contains the standard deviation
        of each column. Without `spreads`, the standard deviation of a part is assumed to be a quarter of its
        range. A product is correlated with its parts, which makes the standard errors of the product and of
        its parts larger.
        """
        main = {column[0]: k for k, column in enumerate(self.columns) if len(column) == 1}
        parts = list(dict.fromkeys(part for column in self.columns for part in column))
        usual = {part: (part.high - part.low) / 4 for part in parts}
        if spreads is not None:
            usual |= {part: float(spreads[k]) for part, k in main.items()}
        mean = {part: (part.high + part.low) / 2 for part in parts}
        moment = np.array(
            [
                [
                    math.prod(
                        mean[part] ** ((part in a) + (part in b))
                        + (usual[part] ** 2 if part in a and part in b else 0.0)
                        for part in {*a, *b}
                    )
                    for b in self.columns
                ]
                for a in self.columns
            ]
        )
        middle = np.array([math.prod(mean[part] for part in column) for column in self.columns])
        covariance = moment - np.outer(middle, middle)
        sd = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(sd, sd)
        return sd if spreads is None else np.asarray(spreads, dtype=np.float64), correlation

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def variables(self, parsed: Mapping[str, Array], site: Any, rows: int) -> tuple[Array, Array]:
        """(X, y): the columns and the outcome. A missing cell is NaN, except in a column of `indicators`.

        In such a column, a missing cell counts as the middle of the range, or as the reference level.
        """
        where = np.broadcast_to(np.asarray(site, dtype=np.int64), (rows,))
        values = {part: self._values(part, parsed, where) for column in self.columns for part in column}
        X = np.column_stack([np.prod([values[part] for part in column], axis=0) for column in self.columns])
        kinds = {field.name: field for field in self.fields}
        y = [_numbers(kinds[name], parsed[name]) for name in self.left]
        return X, y[0] if len(y) == 1 else np.column_stack(y)

    def _values(self, part: FormulaPart, parsed: Mapping[str, Array], site: NDArray[np.int64]) -> Array:
        if part.source == SITE and SITE not in self.reads:
            return np.asarray(site == part.place, dtype=np.float64)
        cells = parsed[part.source]
        lost = cells < 0 if cells.dtype.kind == "i" else np.isnan(cells)
        if part.gap:
            return np.asarray(lost, dtype=np.float64)
        field = next(one for one in self.fields if one.name == part.source)
        found = _numbers(field, cells) if part.place is None else np.asarray(cells == part.place, np.float64)
        usual = (part.low + part.high) / 2 if part.place is None else 0.0
        return np.where(lost, usual if part.source in self.indicators else np.nan, found)


def read_formula(
    text: str, schema: Schema, family: str, sites: Sequence[str], indicators: tuple[str, ...] = ()
) -> Formula:
    """The columns that a formula names, with their public ranges."""
    left, terms = _parse(text)
    known = {field.name: field for field in schema}
    if len(left) != (2 if family == "hazard" else 1):
        form = "time + event ~ ..." if family == "hazard" else "outcome ~ ..."
        raise ParameterError(f"`formula` must be of the form {form!r} for the family {family}; got {text!r}.")
    outcome = [_known(name, known, text) for name in left]
    columns: list[tuple[FormulaPart, ...]] = []
    for term in terms:
        blocks = [_parts(factor, known, sites, text) for factor in term]
        if len(term) > 1:
            _check_main_effects(term, terms, known, text)
        found: list[tuple[FormulaPart, ...]] = [()]
        for block in blocks:
            found = [(*one, part) for one in found for part in block]
        columns += found
    named = dict.fromkeys(factor for term in terms for factor in term if factor in known)
    if both := [name for name in left if name in named]:
        raise ParameterError(f"`formula` must not have {both[0]!r} on both sides; got {text!r}.")
    fields = tuple(dict.fromkeys([*outcome, *(known[name] for name in named)]))
    for name in indicators:
        if name not in named:
            raise ParameterError(
                f"`indicators` must name columns on the right side of `formula`; got {name!r}."
            )
        columns.append((FormulaPart(f"{name} missing", 0.0, 1.0, name, None, True),))
    return Formula(left, _outcome_range(outcome[-1], family), tuple(columns), fields, indicators)


def _parse(text: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The names on the left side, and the factors of every term on the right side, without the intercept."""
    try:
        from formulaic import Formula as Parsed
        from formulaic.errors import FormulaicError
    except ImportError as error:
        raise MissingExtra("formulaic", "tables") from error
    if "**" in text or "^" in text:
        raise ParameterError(
            f"`formula` must not contain powers; got {text!r}. Add a column that contains the power."
        )
    bare = re.sub(r"`[^`]*`|C\([^()]*\)", "x", text)
    if "(" in bare or max(map(len, map(_OPERATOR.findall, re.split(r"[+~-]", bare)))) >= _MOST_FACTORS:
        raise ParameterError(
            f"`formula` must be made of columns, C(column), `:`, `*` and `+`, with at most {_MOST_FACTORS} "
            f"factors in a product; got {text[:200]!r}."
        )
    try:
        parsed = Parsed(text)
        sides = [
            [[factor.expr for factor in term.factors] for term in side] for side in (parsed.lhs, parsed.rhs)
        ]
    except (FormulaicError, AttributeError, SyntaxError, TypeError):
        raise ParameterError(
            f"`formula` must have the form 'outcome ~ column + column'; got {text!r}."
        ) from None
    left, right = ([[_factor(expr, text) for expr in term] for term in side] for side in sides)
    terms = [tuple(term) for term in right if term != ["1"]]
    if len(terms) == len(right):
        raise ParameterError(f"`formula` must not remove the intercept; got {text!r}. Leave out 0 and -1.")
    if not terms:
        raise ParameterError(f"`formula` must name at least one column on its right side; got {text!r}.")
    return tuple(name for term in left for name in term if name != "1"), terms


def _factor(expr: str, text: str) -> str:
    match = _FACTOR.match(expr.strip("`"))
    if match is None or expr.count("(") != expr.count(")"):
        raise ParameterError(
            f"`formula` must be made of columns, C(column), `:`, `*` and `+`; got {expr!r} in {text!r}."
        )
    return match.group(1).strip("`")


def _known(name: str, known: Mapping[str, Field], text: str) -> Field:
    if name not in known:
        raise ParameterError(f"`formula` must name columns of the schema; got {name!r} in {text!r}.")
    return known[name]


def _parts(name: str, known: Mapping[str, Field], sites: Sequence[str], text: str) -> list[FormulaPart]:
    """The parts of one factor: one numeric column, or one column of 0 and 1 for each level but the first."""
    if name == SITE and SITE not in known:
        if len(sites) < 2:
            raise ParameterError(
                "`site` must be given to `fit` and contain two or more sites: `formula` has the term `site`."
            )
        return [FormulaPart(f"site[{one}]", 0.0, 1.0, SITE, k) for k, one in enumerate(sites) if k]
    field = _known(name, known, text)
    if isinstance(field, Category):
        if len(field.values) < 2:
            raise ParameterError(f"`formula` must not name {name!r}: this category has only one value.")
        return [FormulaPart(f"{name}[{one}]", 0.0, 1.0, name, k) for k, one in enumerate(field.values) if k]
    low, high = _range(field)
    return [FormulaPart(name, low, high, name)]


def _range(field: Field) -> tuple[float, float]:
    if isinstance(field, Number):
        return field.low, field.high
    return (0.0, float(field.days)) if isinstance(field, Date) else (0.0, 1.0)


def _numbers(field: Field, cells: Array) -> Array:
    """Cells as numbers: for a date, days since the start of its range; for a category, the value's index."""
    if isinstance(field, Category):
        return np.where(cells < 0, np.nan, cells.astype(np.float64))
    return np.clip(cells - field.start, 0.0, field.days) if isinstance(field, Date) else cells


def _check_main_effects(
    term: tuple[str, ...], terms: list[tuple[str, ...]], known: Mapping[str, Field], text: str
) -> None:
    for name in term:
        many = name not in known or isinstance(known[name], Category)
        if many and (name,) not in terms:
            raise ParameterError(
                f"`formula` with {':'.join(term)!r} must also have the term {name!r} by itself; got {text!r}."
            )


def _outcome_range(field: Field, family: str) -> tuple[float, float]:
    """The public range of the outcome."""
    if family in ("binomial", "hazard"):
        two = isinstance(field, Boolean) or (isinstance(field, Category) and len(field.values) == 2)
        if not two and not (isinstance(field, Number) and (field.low, field.high) == (0.0, 1.0)):
            raise ParameterError(
                f"`formula` must have an outcome with two values: a boolean, a category of two values or a "
                f"number from 0 to 1; {field.name!r} has another type or range."
            )
        return 0.0, 1.0
    if not isinstance(field, Number):
        raise ParameterError(f"`formula` must have a number as its outcome; {field.name!r} has another type.")
    return field.low, field.high
