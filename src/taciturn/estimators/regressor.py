"""PrivateHuberRegressor: robust regression with the log-cosh loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from ..core import checks
from ..core.errors import DataError
from ..core.types import Array
from ..objective.losses import LogCosh, Loss
from ..objective.rows import FARTHEST
from .base import PrivateLinearModel
from .labels import floats_or_same, real_targets


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateHuberRegressor(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]
    """Linear regression with the log-cosh loss, which limits the influence of outliers; y needs no bound.

    Before anything is spent, `taciturn.check` shows the owner of the rows how many of them would be clipped
    or count as zeros, and whether `target_scale` suits the targets.

    Parameters
    ----------
    target_scale : a PUBLIC number, the typical magnitude of y. The model is fitted to y / target_scale,
        clipped to +-1e9. With target_scale = 1 and targets in the hundreds, a fit spends its budget and
        learns almost nothing; `taciturn.check(X, y=y, target_scale=...)` warns of this beforehand. If all y
        are far from 0, subtract a public centre from y and give the typical distance from this centre: the
        error from noise is proportional to target_scale.
    scale : the residual at which the loss turns from quadratic to linear, in units of target_scale.
    others : as for `PrivateLogisticRegression`. The attributes are the same too, except those about classes.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (4000, 2))
    >>> model = PrivateHuberRegressor(epsilon=1.0, sites=4, random_state=0).fit(X, X @ [2.0, -1.0])
    >>> bool(model.score(X, X @ [2.0, -1.0]) > 0.5)
    True
    """

    target_scale: float = 1.0
    scale: float = 1.0

    def _loss(self) -> Loss:
        return LogCosh(self.scale)

    def fit(self, X: Any, y: Any, site: Any = None, person: Any = None) -> Self:
        """Train across sites; `site` is the site of every row. A row with a NaN target counts as zeros.

        `person` is the id of every row's person: the rows of a person then count as one row, and the
        certificate protects persons.
        """
        keep, y = None, floats_or_same(y)
        if isinstance(y, np.ndarray) and y.dtype.kind == "f":
            keep = ~np.isnan(np.ravel(y))
            y = np.where(np.isnan(y), 0.0, y)
        X, y = self._validated(X, y, y_numeric=True)
        if np.asarray(y).dtype.kind not in "biuf":  # NumPy's own error would quote the text
            raise DataError("`y` of a regression must contain numbers; some entries are texts.")
        unit = checks.positive("target_scale", self.target_scale)
        with np.errstate(over="ignore"):
            targets = np.clip(np.asarray(y, dtype=np.float64) / unit, -FARTHEST, FARTHEST)
        self._fit_targets(X, targets[None], site, person=person, keep=keep)
        for name in ("coef_", "intercept_", "site_coef_", "site_intercept_"):
            setattr(self, name, getattr(self, name) * unit)
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        self._certify_model()
        return self

    def _own_targets(self, y: Any) -> tuple[Array, NDArray[np.bool_], Array, float]:
        targets, unit = real_targets(y), checks.positive("target_scale", self.target_scale)
        known = np.isfinite(targets)
        return np.where(known, targets, 0.0)[None] / unit, known, np.ones(len(targets)), unit

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions. Targets that are not numbers are refused, without quoting them."""
        return float(super().score(X, real_targets(y), sample_weight))

    def predict(self, X: Any) -> Array:
        """coef.x + intercept of each row."""
        return self._decide(X)[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks have few rows, and epsilon is 1: the scores are poor
        tags.regressor_tags.poor_score = True
        return tags
