"""coef_intervals: how far a coefficient may be from the truth, sampling and privacy noise together.

A parametric bootstrap: the fitted model stands for the truth, public rows for the rows; labels are drawn from
it, and the same private fit is rehearsed on them again and again. It reads nothing but the released model,
public facts and public rows, so it costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .. import checks
from ..errors import DataError, ParameterError
from ..types import Array
from .classifiers import PrivateLogisticRegression


@dataclass(frozen=True, eq=False)
class CoefIntervals:
    """Intervals of `coef_`, (outputs, features), and of `intercept_`, (outputs,), at a level.

    bias : how far the private fit is from its own truth on average; the intervals allow for it.
    """

    low: Array
    high: Array
    intercept_low: Array
    intercept_high: Array
    level: float
    repeats: int
    bias: Array

    def __repr__(self) -> str:
        outputs, features = self.low.shape
        about = f"level={self.level:g}, repeats={self.repeats}"
        return f"CoefIntervals({outputs} x {features}, {about})"


def coef_intervals(
    model: PrivateLogisticRegression,
    public: Any,
    *,
    level: float = 0.95,
    repeats: int = 100,
    seed: int = 0,
) -> CoefIntervals:
    """Confidence intervals of a fitted logistic regression that include the noise of privacy.

    Parameters
    ----------
    model : fitted, for records (not persons).
    public : rows that look like the private ones and are public: of an earlier study, or made from the
        schema. NEVER the private rows: their spread would be a release that nothing covers.
    level : the share of such intervals that hold the truth.
    repeats : rehearsals; each takes as long as a fit.
    seed : of the rehearsals, which protect nobody.

    The intervals are `2 coef - quantiles of the rehearsals` (the basic bootstrap), so that what the
    regulariser takes from every coefficient is given back on average. They are as good as `public` is like
    the private rows, and as the model is right.
    """
    if not isinstance(model, PrivateLogisticRegression):
        raise ParameterError(f"`model` must be a PrivateLogisticRegression; got {type(model).__name__}.")
    check_is_fitted(model)
    certificate = model.certificate_
    if certificate.run.unit != "record":
        raise ParameterError("`model` must be fitted for records: whose rows are whose is not public.")
    share, count = checks.probability("level", level), checks.whole("repeats", repeats, least=20)
    X = np.asarray(public, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != model.n_features_in_ or not np.isfinite(X).all():
        raise DataError(f"`public` must be finite rows of {model.n_features_in_} features.")
    chances = np.cumsum(model.predict_proba(X), axis=1)
    site = np.repeat(np.arange(len(certificate.sites)), [facts.samples for facts in certificate.sites])
    rng = np.random.default_rng(checks.whole("seed", seed))
    rehearsals = [_rehearse(model, X, chances, site, rng) for _ in range(count)]
    coefs, intercepts = (np.stack(part) for part in zip(*rehearsals, strict=True))
    ends = [(1 + share) / 2, (1 - share) / 2]
    high_coef, low_coef = np.quantile(coefs, ends, axis=0, method="weibull")
    high_intercept, low_intercept = np.quantile(intercepts, ends, axis=0, method="weibull")
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    return CoefIntervals(
        low=2 * coef - high_coef,
        high=2 * coef - low_coef,
        intercept_low=2 * intercept - high_intercept,
        intercept_high=2 * intercept - low_intercept,
        level=share,
        repeats=count,
        bias=coefs.mean(axis=0) - coef,
    )


def _rehearse(
    model: PrivateLogisticRegression, X: Array, chances: Array, site: Any, rng: np.random.Generator
) -> tuple[Array, Array]:
    """The same fit, with as many rows at every site, drawn from the public rows and the fitted model."""
    at = rng.integers(0, len(X), len(site))
    drawn = (rng.random(len(at))[:, None] > chances[at]).sum(axis=1).clip(max=len(model.classes_) - 1)
    again = clone(model).set_params(
        classes=model.classes_.tolist(),
        random_state=int(rng.integers(2**31 - 1)),
        data_norm=model.data_norm_,
        ledger=None,
        verbose=False,
    )
    again.fit(X[at], model.classes_[drawn], site=site)
    return np.atleast_2d(again.coef_), np.atleast_1d(again.intercept_)
