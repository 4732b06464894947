"""A table as rows of bounded norm, by public facts alone: each row depends on its own record, no other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from ... import checks
from ...errors import DataError
from ...types import Array
from .columns import MISSING, Parsed, parse
from .fields import Boolean, Category, Date, Number
from .schema import Schema
from .table_forms import take_columns


class BoundedEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """x = encode(record), ||x|| <= data_norm, by a public schema alone: `fit` learns nothing.

    Numbers are scaled by their public range and clipped to it; a category becomes one column per declared
    value, all zeros for any other value. A record with a missing or unreadable value becomes a row of zeros,
    which says nothing about it; no record is dropped, since their number is public.

    Parameters
    ----------
    schema : Schema, or the plain table that `Schema.from_dict` takes
        The columns, in the order of the rows where these have no names.
    data_norm : float
        The bound on every row's norm.
    intercept : bool
        Whether to add a last column `intercept` that is 1 before the bound is applied, and so lies inside it.
    rows : "clip" or "scale"
        Divide each row above the bound by its own norm, or all rows by the largest norm the schema allows.
    missing : "row" or "field"
        What a missing value makes zero: the whole row, or the columns of its own field.

    Examples
    --------
    >>> from taciturn.data import Category, Number, Schema
    >>> schema = Schema((Number("age", 0, 100), Category("sex", ("female", "male"))))
    >>> encoder = BoundedEncoder(schema, data_norm=1.0, rows="scale")
    >>> encoder.fit_transform([{"age": 50, "sex": "male"}, {"age": 31, "sex": None}]).round(3)
    array([[0.354, 0.   , 0.707],
           [0.   , 0.   , 0.   ]])
    """

    def __init__(
        self,
        schema: Schema | Mapping[str, Any],
        *,
        data_norm: float = 1.0,
        intercept: bool = False,
        rows: str = "clip",
        missing: str = "row",
    ) -> None:
        self.schema = schema
        self.data_norm = data_norm
        self.intercept = intercept
        self.rows = rows
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and the table's columns; no value of the table is read."""
        schema = self._check_schema()
        take_columns(schema.names, X)
        self.n_features_in_ = len(schema)
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The encoded rows, in order, one for each record."""
        schema = self._check_schema()
        Z = encode(schema, parse(schema, X), missing=self.missing, intercept=self.intercept)
        worst = math.sqrt(len(schema) + self.intercept)
        return bound_rows(Z, bound=float(self.data_norm), how=self.rows, worst=worst)

    def unread_cells(self, X: Any) -> NDArray[np.bool_]:
        """Which cells are missing, cannot be read or hold a category that was not declared: (rows, columns).

        It is read off the rows: for whoever owns them.
        """
        schema = self._check_schema()
        columns = parse(schema, X)
        unread = [
            columns[field.name] < 0 if isinstance(field, Category) else np.isnan(columns[field.name])
            for field in schema
        ]
        return np.column_stack(unread)

    def unreadable(self, X: Any) -> NDArray[np.bool_]:
        """Which records become rows of zeros, since a value is missing or cannot be read: (rows,).

        With `missing="field"` those of which no value at all can be read.
        """
        schema = self._check_schema()
        columns = parse(schema, X)
        absent = [
            columns[field.name] == MISSING if isinstance(field, Category) else np.isnan(columns[field.name])
            for field in schema
        ]
        combine = np.logical_or if self.missing == "row" else np.logical_and
        return np.asarray(combine.reduce(absent))

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        return self._check_schema().names

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the encoded columns: `age`, `sex=female`, `sex=male`."""
        schema = self._check_schema()
        if input_features is not None and tuple(input_features) != schema.names:
            raise DataError("`input_features` must be the schema's columns, in its order.")
        return np.array([*schema.feature_names, *["intercept"] * self.intercept], dtype=object)

    def _check_schema(self) -> Schema:
        checks.positive("data_norm", self.data_norm)
        checks.choice("rows", self.rows, ("clip", "scale"))
        checks.choice("missing", self.missing, ("row", "field"))
        if not isinstance(self.intercept, bool):
            raise DataError(f"`intercept` must be True or False; got {type(self.intercept).__name__}.")
        return self.schema if isinstance(self.schema, Schema) else Schema.from_dict(self.schema)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # the schema is all there is to know
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.dict = True
        return tags


def encode(schema: Schema, columns: Parsed, *, missing: str = "row", intercept: bool = False) -> Array:
    """Numbers scaled by their public range and clipped to it, one column per declared category, perhaps a 1.

    A category that was not declared is all zeros. A missing value makes the whole row 0, so that it says
    nothing (`missing="row"`), or only its own columns (`missing="field"`). No row is ever dropped: their
    number is public.
    """
    rows = len(columns[schema.names[0]])
    Z = np.zeros((rows, len(schema.feature_names) + intercept))
    Z[:, Z.shape[1] - intercept :] = 1.0
    invalid = np.zeros(rows, dtype=bool)
    start = 0
    for field in schema:
        values = columns[field.name]
        if not isinstance(field, Category):
            absent = np.isnan(values)
            Z[:, start] = np.where(absent, 0.0, scale_numbers(field, values))
        else:
            absent = values == MISSING
            known = np.flatnonzero(values >= 0)
            Z[known, start + values[known]] = 1.0
        invalid |= absent
        start += len(field.feature_names)
    if missing == "row":
        Z[invalid] = 0.0
    return Z


def scale_numbers(field: Number | Date | Boolean, values: Array) -> Array:
    """low -> 0 and high -> 1 (low -> -1 if symmetric), clipped; NaN stays NaN."""
    if isinstance(field, Boolean):
        return values
    if isinstance(field, Date):
        return np.clip((values - field.start) / field.days, 0.0, 1.0)
    above = np.clip(values, field.low, field.high) - field.low
    span = field.high - field.low
    unit = np.log1p(above) / math.log1p(span) if field.log else above / span
    return 2.0 * unit - 1.0 if field.symmetric else unit


def bound_rows(Z: Array, *, bound: float, how: str, worst: float) -> Array:
    """Rows of norm at most `bound`: those above it divided by their norm ("clip"), or all by one ("scale").

    `worst` is a bound on the rows' norms, for "scale". The result stays below the bound in floats too,
    whatever the order in which its squares are added up: hence the few last digits given away.
    """
    spare = 1.0 + Z.shape[1] * np.finfo(np.float64).eps
    norms = np.sqrt(np.einsum("ij,ij->i", Z, Z)) if how == "clip" else np.full(len(Z), worst)
    factors = np.where(norms > bound / spare, bound / np.maximum(norms * spare, bound), 1.0)
    return np.multiply(Z, factors[:, None], out=Z)
