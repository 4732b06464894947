"""PrivateAdditiveClassifier, PrivateAdditiveRegressor: private models with one curve for each column.

The score of a record is a constant plus the values of its columns' curves. A curve is piecewise linear, and
its knots are equally spaced over the public range of the column.
"""

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
from ...data.features.blind_choice import schema_map
from ...data.features.mapped_rows import held_if_few
from ...data.tables.dealing import SiteAssignment, assign_sites
from ...data.tables.encoder import BoundedEncoder
from ...data.tables.schema import Schema, public_columns
from ...data.tables.table_inputs import take_columns
from ...data.tables.unit_ball import UnitBallScaling
from ...planning.request import PlanRequest
from ..base import PrivateLinearModel
from ..classifiers import PrivateLogisticRegression
from ..regressor import PrivateHuberRegressor
from .curves import EffectCurve, curve_names, plot_curves, read_curve

PublicColumns = Schema | Mapping[str, Any] | None


@dataclass(kw_only=True, eq=False, repr=False)
class AdditiveModel(PrivateLinearModel):
    """The base class of both models: linear in features that form one curve for each column of a schema."""

    schema: PublicColumns = None
    curves: int | str = "auto"

    _scale = "effect on the score"

    def fit(self, X: Any, y: Any, site: Any = None, person: Any = None) -> Self:
        """Train across sites, as `PrivateLogisticRegression.fit`; `X` is a table with the schema's columns.

        Missing values are allowed. With curves, each column has a separate effect for missing values. With
        straight lines, a missing number counts as the middle of its range, and a missing boolean as False.
        """
        if self.data_norm != 1.0:
            raise ParameterError(
                f"`data_norm` must be left out, because the schema bounds every row; got {self.data_norm!r}."
            )
        schema = public_columns(self.schema)
        rows = len(take_columns(schema.names, X)[schema.names[0]])
        counted = assign_sites(rows, site, self.sites, self.graph, 0, person)  # the fit assigns rows again
        knots = self._knots(schema, sum(counted.samples), counted.graph.n)
        missing = "indicator" if knots > 1 else "field"  # straight lines: too few records for more columns
        self.encoder_ = BoundedEncoder(schema, curves=knots, missing=missing)
        super().fit(self.encoder_.lazy_rows(X), y, site, person)
        self.n_features_in_ = len(schema)
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        return self

    def curve(self, name: str) -> EffectCurve:
        """The effect of the column `name` on the score, over its public range."""
        check_is_fitted(self)
        return read_curve(self.encoder_, np.atleast_2d(self.coef_), name, self._scale)

    def plot(self) -> Picture:
        """All curves on one page of small panels, on the same scale. A notebook shows the page.

        The curves have no confidence bands: no method is known that gives valid bands for these curves.
        """
        check_is_fitted(self)
        curves = [self.curve(name) for name in curve_names(self.encoder_)]
        cost = format_cost(self.certificate_.epsilon) if hasattr(self, "certificate_") else ""
        title = f"Curves of a private model, epsilon = {cost}" if cost else ""
        return plot_curves(curves, getattr(self, "classes_", ()), title)

    def _knots(self, schema: Schema, units: int, sites: int) -> int:
        """The number of knots: as given, or chosen from the budget and the number of records (or persons)."""
        if self.curves == "auto":
            delta = checks.usual_delta(self.delta, units, insisted=True)
            noises = sites / (1 if self.colluding is None else max(sites - self.colluding, 1))
            return schema_map(schema, units, self.epsilon, delta, noises)[0] or 1
        return checks.whole("curves", self.curves, least=1)

    def _request(self, places: SiteAssignment, ball: UnitBallScaling, outputs: int) -> PlanRequest:
        return replace(super()._request(places, ball, outputs), additive=True)

    def _features(self, X: Any) -> Any:
        return held_if_few(self.encoder_.lazy_rows(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateAdditiveClassifier(AdditiveModel, PrivateLogisticRegression):
    """log-odds = constant + one curve for each column, under one privacy budget. The curves can be plotted.

    Before anything is spent, `taciturn.check(table, schema, y)` shows the owner of the rows which values do
    not fit the schema.

    Parameters
    ----------
    schema : the PUBLIC ranges and categories of the columns: a `taciturn.data.Schema`, or in short
        {"age": (0, 110), "ward": ["medical", "surgical"], "smoker": bool}.
    curves : the number of knots of the curve of each number or date; 1 makes a straight line. "auto" uses 9
        knots, or a straight line if there are too few records for curves at this budget.
    others : as for `PrivateLogisticRegression`, but without `data_norm`. The attributes are the same too.

    Attributes
    ----------
    encoder_ : the encoder that turns records into rows. Its features have the order of `coef_`.

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

    Before anything is spent, `taciturn.check(table, schema, y, target_scale=...)` shows the owner of the rows
    which values do not fit the schema.

    Parameters
    ----------
    schema, curves : as for `PrivateAdditiveClassifier`.
    others : as for `PrivateHuberRegressor`, but without `data_norm`.
    """

    _scale = "effect on the target"
