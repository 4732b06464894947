"""A table as rows of bounded norm, by public facts alone: each row depends on its own record, no other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .columns import MISSING, Parsed
from .fields import Boolean, Category, Date, Number
from .schema import Schema

Matrix = NDArray[np.float64]


def encode(schema: Schema, columns: Parsed, *, missing: str = "row", intercept: bool = False) -> Matrix:
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


def scale_numbers(field: Number | Date | Boolean, values: Matrix) -> Matrix:
    """low -> 0 and high -> 1 (low -> -1 if symmetric), clipped; NaN stays NaN."""
    if isinstance(field, Boolean):
        return values
    if isinstance(field, Date):
        return np.clip((values - field.start) / field.days, 0.0, 1.0)
    above = np.clip(values, field.low, field.high) - field.low
    span = field.high - field.low
    unit = np.log1p(above) / math.log1p(span) if field.log else above / span
    return 2.0 * unit - 1.0 if field.symmetric else unit


def bound_rows(Z: Matrix, *, bound: float, how: str, worst: float) -> Matrix:
    """Rows of norm at most `bound`: those above it divided by their norm ("clip"), or all by one ("scale").

    `worst` is a bound on the rows' norms, for "scale". The result stays below the bound in floats too,
    whatever the order in which its squares are added up: hence the few last digits given away.
    """
    spare = 1.0 + Z.shape[1] * np.finfo(np.float64).eps
    norms = np.sqrt(np.einsum("ij,ij->i", Z, Z)) if how == "clip" else np.full(len(Z), worst)
    factors = np.where(norms > bound / spare, bound / np.maximum(norms * spare, bound), 1.0)
    return np.multiply(Z, factors[:, None], out=Z)
