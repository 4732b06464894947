"""PrivateHuberRegressor: robust regression with the log-cosh loss."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from .. import checks
from ..admm.methods import Method
from ..errors import DataError
from ..graph import GraphLike
from ..objective.losses import LogCosh, Loss
from ..objective.rows import FARTHEST
from ..types import Array
from .base import PrivateLinearModel
from .charging import LedgerFile
from .labels import floats_or_same, real_targets


class PrivateHuberRegressor(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]
    """Linear regression with the log-cosh loss, which no outlier can pull hard; y needs no bound.

    Parameters
    ----------
    target_scale : a PUBLIC number, the size of a typical y; the model is fitted to y / target_scale,
        cut off at a billion on either side.
    scale : where the loss turns from square to absolute, in units of target_scale.
    others : as for `PrivateLogisticRegression`, and so are the attributes.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (4000, 2))
    >>> model = PrivateHuberRegressor(epsilon=1.0, sites=4, random_state=0).fit(X, X @ [2.0, -1.0])
    >>> bool(model.score(X, X @ [2.0, -1.0]) > 0.5)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        sites: int = 5,
        graph: GraphLike = "complete",
        data_norm: float | str | None = 1.0,
        colluding: int | None = None,
        target_scale: float = 1.0,
        scale: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.5,
        C: float | str = "auto",
        regularization: float | str = "auto",
        rounds: int | None = None,
        max_rounds: int | None = None,
        noise: str = "best",
        method: Method | None = None,
        effort: str = "full",
        ledger: str | PathLike[str] | LedgerFile | None = None,
        random_state: Any = None,
        large_delta: bool = False,
        verbose: bool | int = False,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            sites=sites,
            graph=graph,
            data_norm=data_norm,
            colluding=colluding,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            C=C,
            regularization=regularization,
            rounds=rounds,
            max_rounds=max_rounds,
            noise=noise,
            method=method,
            effort=effort,
            ledger=ledger,
            random_state=random_state,
            large_delta=large_delta,
            verbose=verbose,
        )
        self.target_scale = target_scale
        self.scale = scale

    def _loss(self) -> Loss:
        return LogCosh(self.scale)

    def fit(self, X: Any, y: Any, site: Any = None, person: Any = None) -> Self:
        """Train across sites; `site` says which site holds which row. A target of NaN makes its row zeros.

        `person` says whose row it is: the rows of a person then count as one, and are covered together.
        """
        keep, y = None, floats_or_same(y)
        if isinstance(y, np.ndarray) and y.dtype.kind == "f":
            keep = ~np.isnan(np.ravel(y))
            y = np.where(np.isnan(y), 0.0, y)
        X, y = self._validated(X, y, y_numeric=True)
        if np.asarray(y).dtype.kind not in "biuf":  # NumPy's own complaint would quote the text
            raise DataError("`y` of a regression must hold numbers; some entries are texts.")
        unit = checks.positive("target_scale", self.target_scale)
        with np.errstate(over="ignore"):
            targets = np.clip(np.asarray(y, dtype=np.float64) / unit, -FARTHEST, FARTHEST)
        self._fit_targets(X, targets[None], site, person=person, keep=keep)
        for name in ("coef_", "intercept_", "site_coef_", "site_intercept_"):
            setattr(self, name, getattr(self, name) * unit)
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions. Targets that are no numbers are refused, and not quoted."""
        return float(super().score(X, real_targets(y), sample_weight))

    def predict(self, X: Any) -> Array:
        """coef.x + intercept of each row."""
        return self._decide(X)[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = (
            True  # on the few rows of scikit-learn's checks, within a budget of 1
        )
        return tags
