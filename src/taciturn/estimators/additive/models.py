"""PrivateAdditiveClassifier, PrivateAdditiveRegressor: private models that are one curve per column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...core import checks
from ...core.errors import ParameterError
from ...core.formatting import format_cost
from ...core.notebook import Picture
from ...core.types import Array
from ...data.features.blind_choice import schema_map
from ...data.tables.encoder import BoundedEncoder
from ...data.tables.schema import Schema, public_columns
from ...data.tables.table_inputs import take_columns
from ...data.tables.unit_ball import UnitBallScaling
from ...planning.request import PlanRequest
from ..assignment import SiteAssignment
from ..base import PrivateLinearModel
from ..classifiers import PrivateLogisticRegression
from ..regressor import PrivateHuberRegressor
from .curves import EffectCurve, curve_names, plot_curves, read_curve

PublicColumns = Schema | Mapping[str, Any] | None


@dataclass(kw_only=True, eq=False, repr=False)
class AdditiveModel(PrivateLinearModel):
    """The base of both models: a public schema maps the table to curves, and a linear model is fitted."""

    schema: PublicColumns = None
    curves: int | str = "auto"

    _scale = "effect on the score"

    def fit(self, X: Any, y: Any, site: Any = None, person: Any = None) -> Self:
        """Train across sites, as `PrivateLogisticRegression.fit`; `X` is a table with the schema's columns.

        A missing value is no obstacle: each column has an effect for it, or counts as the middle of its range
        where the columns are straight lines.
        """
        if self.data_norm != 1.0:
            raise ParameterError(
                f"`data_norm` must be left out; got {self.data_norm!r}: the schema bounds every row."
            )
        schema = public_columns(self.schema)
        rows = len(take_columns(schema.names, X)[schema.names[0]])
        units = rows if person is None else len(np.unique(np.asarray(person)))
        knots = self._knots(schema, units, self.sites if site is None else len(np.unique(np.asarray(site))))
        missing = "indicator" if knots > 1 else "field"  # too few for curves are too few for gaps
        self.encoder_ = BoundedEncoder(schema, curves=knots, missing=missing)
        super().fit(self.encoder_.transform(X), y, site, person)
        self.n_features_in_ = len(schema)
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        return self

    def curve(self, name: str) -> EffectCurve:
        """The effect of the column `name` on the score, over its public range."""
        check_is_fitted(self)
        return read_curve(self.encoder_, np.atleast_2d(self.coef_), name, self._scale)

    def plot(self) -> Picture:
        """All curves on one page of small panels, on one scale; a notebook shows it.

        There is no band around a curve: none that holds the truth as often as it says is known yet.
        """
        check_is_fitted(self)
        curves = [self.curve(name) for name in curve_names(self.encoder_)]
        cost = self.certificate_.epsilon if hasattr(self, "certificate_") else None
        return plot_curves(curves, getattr(self, "classes_", ()), _title(cost))

    def _knots(self, schema: Schema, units: int, sites: int) -> int:
        """As given, or as the number of records or persons and the budget allow; 1 makes a straight line."""
        if self.curves == "auto":
            delta = checks.usual_delta(self.delta, units, insisted=True)
            noises = sites / (1 if self.colluding is None else max(sites - self.colluding, 1))
            return schema_map(schema, units, self.epsilon, delta, noises)[0] or 1
        return checks.whole("curves", self.curves, least=1)

    def _request(self, places: SiteAssignment, ball: UnitBallScaling, outputs: int) -> PlanRequest:
        return replace(super()._request(places, ball, outputs), additive=True)

    def _features(self, X: Any) -> Array:
        return self.encoder_.transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateAdditiveClassifier(AdditiveModel, PrivateLogisticRegression):
    """log-odds = constant + one curve per column: a model that people can look at, under one budget.

    `taciturn.check(table, schema, y)` shows the owner of the rows, before anything is spent, what a fit would
    make of them.

    Parameters
    ----------
    schema : the PUBLIC ranges and categories of the columns: a `taciturn.data.Schema`, or in short
        {"age": (0, 110), "ward": ["medical", "surgical"], "smoker": bool}.
    curves : how many knots the curve of a number has; 1 makes a straight line. "auto" takes 9, or a straight
        line where records and budget are too few for a curve.
    others : as for `PrivateLogisticRegression`, but for `data_norm`; so are the attributes.

    Attributes
    ----------
    encoder_ : how a record becomes a row; its feature names are those of `coef_`.

    Examples
    --------
    >>> import numpy as np
    >>> age = np.random.default_rng(0).uniform(0, 100, 4000)
    >>> clf = PrivateAdditiveClassifier(schema={"age": (0, 100)}, colluding=1, random_state=0)
    >>> curve = clf.fit({"age": age}, abs(age - 50) < 20).curve("age")
    >>> curve.x[32], bool(curve.y[32] > 1 > -1 > curve.y[0])
    (50.0, True)
    """

    _scale = "effect on the log-odds"


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateAdditiveRegressor(AdditiveModel, PrivateHuberRegressor):
    """y = constant + one curve per column, with the log-cosh loss of `PrivateHuberRegressor`.

    `taciturn.check(table, schema, y, target_scale=...)` shows the owner of the rows, before anything is
    spent, what a fit would make of them.

    Parameters
    ----------
    schema, curves : as for `PrivateAdditiveClassifier`.
    others : as for `PrivateHuberRegressor`, but for `data_norm`.
    """

    _scale = "effect on the target"


def _title(epsilon: float | None) -> str:
    return "" if epsilon is None else f"Curves of a private model, epsilon = {format_cost(epsilon)}"
