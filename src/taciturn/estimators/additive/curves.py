"""The curves of an additive model: what each column adds to the score, over the column's public range.

An additive model is linear in features that an encoder computes from each column, so its score is a sum of
one function of each column.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.errors import ParameterError
from ...core.notebook import EffectPanel, Picture, draw_effects
from ...core.types import Array
from ...data.features.expansion import Expansion
from ...data.tables.column_types import Boolean, Category, Date, Field, Number
from ...data.tables.encoder import BoundedEncoder, is_number
from ...data.tables.schema import Schema, public_columns

_NO_YES: tuple[str, ...] = ("no", "yes")
_POINTS = 65  # points of a curve over its range; between two knots a curve is a straight line


@dataclass(frozen=True, eq=False)
class EffectCurve:
    """The effect of one column on the score.

    x : numbers, days (`datetime.date`) or categories.
    y : the effect at each x: (points,), or (points, classes) for more than two classes. A constant is
        subtracted so that the mean over all x is 0. The constant does not depend on rows.
    missing : the effect of a missing value, on the same scale as y.
    label : the name of the scale of y.
    """

    name: str
    x: tuple[Any, ...]
    y: Array
    missing: Array
    label: str

    def __repr__(self) -> str:
        return f"EffectCurve({self.name}, {len(self.x)} points)"


def curve_names(encoder: BoundedEncoder) -> tuple[str, ...]:
    """The columns that have a curve."""
    return _schema(encoder).names


def is_additive(encoder: BoundedEncoder) -> bool:
    """Whether a linear model of the encoded rows is a sum of one curve per column."""
    return bool(encoder.curves) and not encoder.surfaces and not encoder.intercept


def read_curve(encoder: BoundedEncoder, coef: Array, name: str, label: str) -> EffectCurve:
    """The curve of a column. `coef` is (outputs, features), in the order of the encoder's features."""
    schema = _schema(encoder)
    if not is_additive(encoder):
        raise ParameterError("`curve` needs an encoder with curves, but without `surfaces` or `intercept`.")
    field = next((field for field in schema if field.name == name), None)
    if field is None:
        raise ParameterError(f"`name` must be one of {', '.join(schema.names)}; got {name!r}.")
    Z, x = _rows(field, encoder)
    found = {feature: k for k, feature in enumerate(encoder.get_feature_names_out().tolist())}
    own = [found[feature] for feature in _features(field, encoder)]
    effects = (Z @ coef[:, own].T) * (float(encoder.data_norm) / math.sqrt(len(schema)))
    zero = effects[:-1].mean(axis=0)
    y, missing = effects[:-1] - zero, effects[-1] - zero
    return EffectCurve(name, x, y[:, 0] if len(coef) == 1 else y, missing, label)


def plot_curves(curves: Sequence[EffectCurve], classes: Sequence[Any], title: str) -> Picture:
    """A page of small panels, one for each column, all on the same scale."""
    names = [str(label) for label in classes]
    panels = [EffectPanel(c.name, c.x, np.reshape(c.y, (len(c.x), -1))) for c in curves]
    return draw_effects(panels, curves[0].label, names if len(names) > 2 else (), title)


def _schema(encoder: BoundedEncoder) -> Schema:
    return public_columns(encoder.schema)


def _features(field: Field, encoder: BoundedEncoder) -> Sequence[str]:
    """The names of a column's features, in the order of the columns of `_rows`."""
    mark = [f"{field.name}?"] * (encoder.missing_as == "indicator")
    if not is_number(field):
        return [*field.feature_names, *mark]
    return [field.name, *(f"{field.name}@{k + 1}" for k in range(Expansion(encoder.curves).knots)), *mark]


def _rows(field: Field, encoder: BoundedEncoder) -> tuple[Array, tuple[Any, ...]]:
    """(Z, x): the features of a column at points x of its range; the last row of Z is a missing value."""
    marked = encoder.missing_as == "indicator"
    if is_number(field):
        v = np.linspace(0.0, 1.0, _POINTS)
        Z = Expansion(encoder.curves, indicators=marked).rows(np.append(v, np.nan)[:, None], [])
        return Z, _in_units(field, v)
    if isinstance(field, Boolean):
        known, x = np.array([[0.0], [1.0]]), _NO_YES
    else:
        known, x = np.eye(len(_values(field))), _values(field)
    Z = np.zeros((len(known) + 1, known.shape[1] + marked))
    Z[:-1, : known.shape[1]] = known
    Z[-1, known.shape[1] :] = 1.0
    return Z, x


def _values(field: Field) -> tuple[str, ...]:
    return field.values if isinstance(field, Category) else ()


def _in_units(field: Number | Date, v: Array) -> tuple[Any, ...]:
    """Values from 0 (low) to 1 (high) in the units of the column: the inverse of `unit_numbers`."""
    if isinstance(field, Date):
        return tuple(dt.date.fromordinal(field.start + round(float(u) * field.days)) for u in v)
    span = field.high - field.low
    return tuple((field.low + (np.expm1(v * math.log1p(span)) if field.log else v * span)).tolist())
