"""Encode a table as rows of bounded norm. A row depends only on public facts and its own record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from ...core import checks
from ...core.errors import DataError
from ...core.types import Array
from ..features.expansion import Expansion
from .column_parsing import MISSING, OTHER, Parsed, parse
from .column_types import Boolean, Category, Date, Field, Number
from .schema import Schema, public_columns
from .table_inputs import take_columns

MISSING_AS = ("row", "field", "indicator")


@dataclass(eq=False, repr=False)
class BoundedEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """x = encode(record), ||x|| <= data_norm, from a public schema alone: `fit` learns nothing.

    Numbers are scaled by their public range and clipped to it; a category becomes one column per declared
    value, all zeros for any other value. A record with a missing or unreadable value becomes a row of zeros,
    which says nothing about it; no record is dropped, since their number is public. `taciturn.check` counts
    such records, and every cell that does not fit, for the owner of the rows. With `curves` or `surfaces`
    numbers become curves and surfaces (see `FeatureMap`), and a missing value has an indicator.

    Parameters
    ----------
    schema : Schema, its dictionary, or in short {"age": (0, 110), "ward": ["medical", "surgical"]}
        The columns. Rows without column names must have them in this order.
    data_norm : float
        The bound on every row's norm.
    intercept : bool
        Whether to add a last column `intercept` that is 1 before the bound is applied; the bound includes
        it.
    rows : "clip" or "scale"
        Divide each row above the bound by its own norm, or all rows by the largest norm the schema allows.
    missing : "row", "field" or "indicator"
        What becomes zero for a missing value: the whole row, or only the columns of its field. An "indicator"
        is an extra column of each field that is 1 for a missing value. None: "indicator" with curves or
        surfaces, else "row".
    curves : int
        How many knots the curve of each number and date has; 0 for a straight line.
    surfaces : int
        How many cosines of all numbers and dates together; they represent interactions.
    seed : int
        The public seed of the surfaces.

    Examples
    --------
    >>> from taciturn.data import Category, Number, Schema
    >>> schema = Schema((Number("age", 0, 100), Category("sex", ("female", "male"))))
    >>> encoder = BoundedEncoder(schema, data_norm=1.0, rows="scale")
    >>> encoder.fit_transform([{"age": 50, "sex": "male"}, {"age": 31, "sex": None}]).round(3)
    array([[0.354, 0.   , 0.707],
           [0.   , 0.   , 0.   ]])
    """

    schema: Schema | Mapping[str, Any]
    _: KW_ONLY
    data_norm: float = 1.0
    intercept: bool = False
    rows: str = "clip"
    missing: str | None = None
    curves: int = 0
    surfaces: int = 0
    seed: int = 0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and the table's columns; no value of the table is read."""
        schema = self._check_schema()
        take_columns(schema.names, X)
        self.n_features_in_ = len(schema)
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The encoded rows, in order, one for each record."""
        schema, columns = self._check_schema(), parse(self._check_schema(), X)
        expansion = self.expansion
        if expansion is None:
            Z = encode(schema, columns, missing=self.missing_as, intercept=self.intercept)
            worst = math.sqrt(len(schema) + self.intercept)
        else:
            Z = expand(schema, columns, expansion, missing=self.missing_as, intercept=self.intercept)
            worst = math.sqrt(1 + self.intercept)
        return bound_rows(Z, bound=float(self.data_norm), how=self.rows, worst=worst)

    def unread_cells(self, X: Any) -> NDArray[np.bool_]:
        """Which cells are missing, cannot be read or hold a category that was not declared: (rows, columns).

        It is computed from the rows, so it is for their owner only.
        """
        return self._absent(X, OTHER)

    def unreadable(self, X: Any) -> NDArray[np.bool_]:
        """Which records become rows of zeros, since a value is missing or cannot be read: (rows,).

        With other settings of `missing`: records without any readable value.
        """
        absent = self._absent(X, MISSING)
        return np.asarray(absent.any(axis=1) if self.missing_as == "row" else absent.all(axis=1))

    def _absent(self, X: Any, most: int) -> NDArray[np.bool_]:
        """Which cells have no value: NaN in a number, or a category code of at most `most`."""
        columns = parse(self._check_schema(), X).values()
        return np.column_stack([np.isnan(c) if c.dtype.kind == "f" else c <= most for c in columns])

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        return self._check_schema().names

    @property
    def missing_as(self) -> str:
        """The value of `missing`, or its default."""
        usual = "indicator" if self.curves or self.surfaces else "row"
        return usual if self.missing is None else self.missing

    @property
    def expansion(self) -> Expansion | None:
        """The curves and surfaces, if there are any."""
        made = Expansion(self.curves, self.surfaces, self.seed, indicators=self.missing_as == "indicator")
        return made if made.curves or made.surfaces else None

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the encoded columns: `age`, `sex=female`, `sex=male`."""
        schema = self._check_schema()
        if input_features is not None and tuple(input_features) != schema.names:
            raise DataError("`input_features` must be the schema's columns, in its order.")
        names = feature_names(schema, self.expansion, indicators=self.missing_as == "indicator")
        return np.array([*names, *["intercept"] * self.intercept], dtype=object)

    def _check_schema(self) -> Schema:
        checks.positive("data_norm", self.data_norm)
        checks.choice("rows", self.rows, ("clip", "scale"))
        checks.choice("missing", self.missing_as, MISSING_AS)
        if self.expansion is None and self.seed:
            raise DataError(f"`seed` belongs to `surfaces`; got {self.seed} without them.")
        if not isinstance(self.intercept, bool):
            raise DataError(f"`intercept` must be True or False; got {type(self.intercept).__name__}.")
        return public_columns(self.schema)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # the schema is all there is to know
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.dict = True
        return tags


def encode(schema: Schema, columns: Parsed, *, missing: str = "row", intercept: bool = False) -> Array:
    """Numbers scaled to their public range and clipped to it, one column per category, and an optional 1.

    A category that was not declared is all zeros. A missing value makes the whole row 0, so that it says
    nothing (`missing="row"`), or only its own columns; with `missing="indicator"` a further column is then 1.
    No row is ever dropped: their number is public.
    """
    rows, marked = len(columns[schema.names[0]]), missing == "indicator"
    Z = np.zeros((rows, len(schema.feature_names) + marked * len(schema) + intercept))
    Z[:, Z.shape[1] - intercept :] = 1.0
    start = 0
    for field in schema:
        values, width = columns[field.name], len(field.feature_names)
        if not isinstance(field, Category):
            Z[:, start] = np.nan_to_num(scale_numbers(field, values))
        else:
            known = np.flatnonzero(values >= 0)
            Z[known, start + values[known]] = 1.0
        if marked:
            Z[:, start + width] = absent(values)
        start += width + marked
    if missing == "row":
        Z[no_answer(schema, columns)] = 0.0
    return Z


def expand(
    schema: Schema, columns: Parsed, expansion: Expansion, *, missing: str, intercept: bool = False
) -> Array:
    """Numbers and dates as curves and surfaces, then categories, booleans and an optional 1."""
    numbers = [unit_numbers(field, columns[field.name]) for field in schema if is_number(field)]
    blocks = [
        encode(Schema((field,)), columns, missing="indicator" if expansion.indicators else "field")
        for field in schema
        if not is_number(field)
    ]
    rows = len(columns[schema.names[0]])
    Z = expansion.rows(np.column_stack(numbers) if numbers else np.zeros((rows, 0)), blocks)
    if missing == "row":
        Z[no_answer(schema, columns)] = 0.0
    return np.hstack([Z, np.ones((rows, 1))]) if intercept else Z


def feature_names(schema: Schema, expansion: Expansion | None, *, indicators: bool) -> tuple[str, ...]:
    """The names of the columns that `encode` and `expand` make, without the constant."""
    each = {field: (*field.feature_names, *[f"{field.name}?"] * indicators) for field in schema}
    if expansion is None:
        return tuple(name for names in each.values() for name in names)
    numbers = [field.name for field in schema if is_number(field)]
    return expansion.names(numbers, [each[field] for field in schema if not is_number(field)])


def is_number(field: Field) -> TypeGuard[Number | Date]:
    """Whether a curve can be drawn over its values."""
    return isinstance(field, Number | Date)


def absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells of a parsed column have no value."""
    return np.asarray(np.isnan(values) if values.dtype.kind == "f" else values == MISSING)


def no_answer(schema: Schema, columns: Parsed) -> NDArray[np.bool_]:
    """Which records have a cell without a value."""
    return np.asarray(np.any([absent(columns[field.name]) for field in schema], axis=0))


def scale_numbers(field: Number | Date | Boolean, values: Array) -> Array:
    """low -> 0 and high -> 1 (low -> -1 if symmetric), clipped; NaN stays NaN."""
    if isinstance(field, Boolean):
        return values
    unit = unit_numbers(field, values)
    return 2.0 * unit - 1.0 if isinstance(field, Number) and field.symmetric else unit


def unit_numbers(field: Number | Date, values: Array) -> Array:
    """low -> 0 and high -> 1, linear or by the logarithm, clipped; NaN stays NaN."""
    if isinstance(field, Date):
        return np.clip((values - field.start) / field.days, 0.0, 1.0)
    above = np.clip(values, field.low, field.high) - field.low
    span = field.high - field.low
    return np.log1p(above) / math.log1p(span) if field.log else above / span


def bound_rows(Z: Array, *, bound: float, how: str, worst: float) -> Array:
    """Rows of norm at most `bound`: long rows divided by their norm ("clip"), or all by `worst` ("scale").

    `worst` is a bound on all norms. The result stays below the bound in floats too,
    in whatever order its squares are added up; for that the rows are shortened by a few last digits.
    """
    spare = 1.0 + Z.shape[1] * np.finfo(np.float64).eps
    norms = np.sqrt(np.einsum("ij,ij->i", Z, Z)) if how == "clip" else np.full(len(Z), worst)
    factors = np.where(norms > bound / spare, bound / np.maximum(norms * spare, bound), 1.0)
    return np.multiply(Z, factors[:, None], out=Z)
