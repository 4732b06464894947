"""Encode a table as rows of bounded norm. A row depends only on public facts and on its own record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from ...core import checks
from ...core.errors import DataError, ParameterError
from ...core.types import Array, LazyRows
from ..features.expansion import Expansion
from ..features.mapped_rows import Columns, MappedRows
from .column_parsing import MISSING, OTHER, parse
from .column_types import Boolean, Category, Date, Field, Number
from .schema import Schema, public_columns
from .table_inputs import take_columns

MISSING_AS = ("row", "field", "indicator")


@dataclass(eq=False, repr=False)
class BoundedEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode records as rows x with ||x|| <= data_norm, from a public schema alone: `fit` learns nothing.

    Numbers are clipped to their public range and scaled by it. A category becomes one column for each
    declared value; for any other value all these columns are 0. By default a record with a missing or
    unreadable value becomes a row of zeros. No record is dropped, because the number of records is public.
    `taciturn.check` shows the owner of the rows how many records and cells do not fit. With `curves` or
    `surfaces`, numbers become curves and surfaces (see `FeatureMap`), and by default a missing value is
    marked in an extra column.

    Parameters
    ----------
    schema : the columns: a `Schema`, the dictionary from its `to_dict`, or a short form such as
        {"age": (0, 110), "ward": ["medical", "icu"]}. If rows come without column names, their cells must be
        in the order of the schema.
    data_norm : float
        The bound on the norm of every row.
    intercept : bool
        Whether to add a last column `intercept`, which is 1 before the bound is applied. The bound includes
        this column.
    rows : "clip" or "scale"
        "clip" scales each row with a norm above the bound down to the bound. "scale" multiplies all rows by
        bound / M, where M is the largest norm that the schema allows, if this factor is below 1.
    missing : "row", "field" or "indicator"
        What becomes zero if a value is missing: the whole row, or only the columns of that field. "indicator"
        does the same as "field", and adds to each field a column that is 1 if the value is missing. The
        default is "indicator" with curves or surfaces, else "row".
    curves : int
        The number of knots of the curve of each number and date; 0 for a straight line.
    surfaces : int
        The number of random Fourier features (cosines) of all numbers and dates together. They represent
        interactions.
    seed : int
        The public seed of the surfaces.
    lazy : bool
        True lets `transform` return the rows as a `LazyRows`, which a fit expands a few rows at a time.

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
    lazy: bool = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and the table's columns; no value of the table is read."""
        schema = self._check_schema()
        take_columns(schema.names, X)
        self.n_features_in_ = len(schema)
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        return self

    def transform(self, X: Any) -> Any:
        """One encoded row for each record, in the order of X: as an array, or as `LazyRows` if `lazy`."""
        rows = self.lazy_rows(X)
        return rows if self.lazy else np.asarray(rows)

    def lazy_rows(self, X: Any) -> LazyRows:
        """The encoded rows, computed when they are needed."""
        schema = self._check_schema()
        columns = parse(schema, X, clip=False)  # `unit_numbers` clips the numbers when it scales them
        made: dict[str, Any] = {"missing": self.missing_as, "intercept": self.intercept}
        bound = {"bound": float(self.data_norm), "how": self.rows}
        encoded = partial(_encoded, schema, self.expansion, made, bound)
        return MappedRows(
            columns, encoded, (len(columns[schema.names[0]]), len(self.get_feature_names_out()))
        )

    def unread_cells(self, X: Any) -> NDArray[np.bool_]:
        """A mask, (rows, columns), of the cells that are missing, unreadable or of an undeclared category.

        A number with `fill` is never marked. The mask is computed from the rows without noise, so only the
        owner of the rows may see it.
        """
        return self._absent(X, OTHER)

    def unreadable(self, X: Any) -> NDArray[np.bool_]:
        """A mask, (rows,), of the records in which a value is missing or unreadable.

        If `missing` is not "row", the mask marks only the records in which all values are missing or
        unreadable.
        """
        absent = self._absent(X, MISSING)
        return np.asarray(absent.any(axis=1) if self.missing_as == "row" else absent.all(axis=1))

    def _absent(self, X: Any, most: int) -> NDArray[np.bool_]:
        """A mask of the cells without a value: NaN, or a category index of at most `most`."""
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
        if any(isinstance(number, str) for number in (self.curves, self.surfaces)):
            raise ParameterError(
                '`curves` and `surfaces` must be whole numbers: "auto" needs the number of records, which an '
                'encoder does not know. For "auto", use `FeatureMap(n=..., epsilon=...)`, an additive model '
                "or a job."
            )
        made = Expansion(self.curves, self.surfaces, self.seed, indicators=self.missing_as == "indicator")
        return made if made.curves or made.surfaces else None

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the encoded columns: `age`, `sex=female`, `sex=male`."""
        schema = self._check_schema()
        if input_features is not None and tuple(input_features) != schema.names:
            raise DataError("`input_features` must be the columns of the schema, in the same order.")
        names = feature_names(schema, self.expansion, indicators=self.missing_as == "indicator")
        return np.array([*names, *["intercept"] * self.intercept], dtype=object)

    def _check_schema(self) -> Schema:
        checks.positive("data_norm", self.data_norm)
        checks.choice("rows", self.rows, ("clip", "scale"))
        checks.choice("missing", self.missing_as, MISSING_AS)
        if self.expansion is None and self.seed:
            raise DataError(f"`seed` is only for `surfaces`; got seed = {self.seed} without surfaces.")
        checks.flag("intercept", self.intercept)
        return public_columns(self.schema)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # only the schema is needed
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.dict = True
        return tags


def _encoded(
    schema: Schema, expansion: Expansion | None, made: dict[str, Any], bound: dict[str, Any], columns: Columns
) -> Array:
    """Encode some records, given as parsed columns, as rows."""
    if expansion is None:
        worst = math.sqrt(len(schema) + made["intercept"])
        return bound_rows(encode(schema, columns, **made), worst=worst, **bound)
    worst = math.sqrt(1 + made["intercept"])
    return bound_rows(expand(schema, columns, expansion, **made), worst=worst, **bound)


def encode(schema: Schema, columns: Columns, *, missing: str = "row", intercept: bool = False) -> Array:
    """The encoded rows: scaled numbers, one column for each value of a category, and an optional constant 1.

    For an undeclared category all columns of the field are 0. A missing value makes the whole row 0
    (`missing="row"`), or only the columns of its field; with `missing="indicator"` an extra column of the
    field is then 1. No row is ever dropped, because the number of rows is public.
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
    schema: Schema, columns: Columns, expansion: Expansion, *, missing: str, intercept: bool = False
) -> Array:
    """The encoded rows: curves of numbers and dates, the other fields, surfaces, an optional constant 1."""
    numbers = [unit_numbers(field, columns[field.name]) for field in schema if is_number(field)]
    blocks = [
        encode(Schema((field,)), columns, missing="indicator" if expansion.indicators else "field")
        for field in schema
        if not is_number(field)
    ]
    rows = len(columns[schema.names[0]])
    Z = expansion.rows(np.column_stack(numbers) if numbers else np.zeros((rows, 0)), blocks)
    Z = np.hstack([Z, np.ones((rows, 1))]) if intercept else Z
    if missing == "row":
        Z[no_answer(schema, columns)] = 0.0
    return Z


def feature_names(schema: Schema, expansion: Expansion | None, *, indicators: bool) -> tuple[str, ...]:
    """The names of the columns that `encode` and `expand` make, without the constant."""
    each = {field: (*field.feature_names, *[f"{field.name}?"] * indicators) for field in schema}
    if expansion is None:
        return tuple(name for names in each.values() for name in names)
    numbers = [field.name for field in schema if is_number(field)]
    return expansion.names(numbers, [each[field] for field in schema if not is_number(field)])


def is_number(field: Field) -> TypeGuard[Number | Date]:
    """Whether the field has a range, so that it can have a curve."""
    return isinstance(field, Number | Date)


def absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    """A mask of the cells of a parsed column that have no value."""
    return np.asarray(np.isnan(values) if values.dtype.kind == "f" else values == MISSING)


def no_answer(schema: Schema, columns: Columns) -> NDArray[np.bool_]:
    """A mask of the records in which at least one cell has no value."""
    return np.asarray(np.any([absent(columns[field.name]) for field in schema], axis=0))


def scale_numbers(field: Number | Date | Boolean, values: Array) -> Array:
    """Values, clipped and scaled: low becomes 0 (or -1 if symmetric), high becomes 1; NaN stays NaN."""
    if isinstance(field, Boolean):
        return values
    unit = unit_numbers(field, values)
    return 2.0 * unit - 1.0 if isinstance(field, Number) and field.symmetric else unit


def unit_numbers(field: Number | Date, values: Array) -> Array:
    """Values, clipped and scaled linearly or by log: low becomes 0, high becomes 1; NaN stays NaN."""
    if isinstance(field, Date):
        return np.clip((values - field.start) / field.days, 0.0, 1.0)
    above = np.clip(values, field.low, field.high) - field.low
    span = field.high - field.low
    return np.log1p(above) / math.log1p(span) if field.log else above / span


def bound_rows(Z: Array, *, bound: float, how: str, worst: float) -> Array:
    """The rows, shortened in place to norm at most `bound`. `worst` is an upper bound on the norms in Z.

    how : "clip" shortens only rows with a larger norm; "scale" multiplies all rows by bound / worst if this
        is below 1.

    The factors are smaller than necessary by a few units in the last place, so that the computed norm is also
    within the bound, in whatever order the squares are added up.
    """
    spare = 1.0 + Z.shape[1] * np.finfo(np.float64).eps
    norms = np.sqrt(np.einsum("ij,ij->i", Z, Z)) if how == "clip" else np.full(len(Z), worst)
    factors = np.where(norms > bound / spare, bound / np.maximum(norms * spare, bound), 1.0)
    return np.multiply(Z, factors[:, None], out=Z)
