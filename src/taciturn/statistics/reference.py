"""Regression without privacy: the maximum-likelihood estimate on the rows of all sites together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..core.types import Array
from ..methods.programs.glm.regression import CLOGLOG
from ..questions.glm.regression_answer import Coefficients, PrivateRegression
from ..questions.glm.regression_question import Design

_STEPS = 100  # the largest number of Newton steps
_CLOSE = 1e-12  # the relative size of a step at which Newton's method ends


def fit_without_noise(
    design: Design, X: Array, outcome: Array, person: NDArray[Any] | None = None
) -> PrivateRegression:
    """Fit by Newton's method (Fisher scoring for cloglog). No noise protects the result.

    Rows with a missing value are left out. All other rows have equal weights, and values outside of their
    public range are clipped to it. With `person`, the standard errors are cluster-robust (sandwich): rows of
    one person may depend on each other.
    """
    whole = np.isfinite(X).all(axis=1) & np.isfinite(outcome).reshape(len(X), -1).all(axis=1)
    rows = design.scaled(X[whole], outcome[whole])
    p, d = len(design.names), design.dimension
    Z, y = _person_periods(rows, p, d) if design.family == "hazard" else (rows[:, :d], rows[:, d])
    family = "binomial" if design.family == "hazard" else design.family
    if len(Z) <= d:
        raise DataError(f"`X` must have more complete rows than the {d} coefficients; got {len(Z)}.")
    f = np.zeros(d)
    if design.link == CLOGLOG:
        f[p:] = np.log(max(float(y.mean()), 1e-9)) * np.sqrt(p + 1.0)
    if family == "poisson":
        f[-1] = np.log(max(float(y.mean()), 1e-9)) / Z[0, -1]
    for _ in range(_STEPS):
        psi, weight = _score(design.link or family, y, Z @ f)
        H = (Z * weight[:, None]).T @ Z
        try:
            move = np.linalg.solve(H, Z.T @ psi)
        except np.linalg.LinAlgError:
            raise DataError(
                "`X` must have linearly independent columns, and must not predict `y` perfectly."
            ) from None
        f += move
        if float(np.max(np.abs(move))) <= _CLOSE * (1.0 + float(np.max(np.abs(f)))):
            break
    else:
        raise DataError("`y` must not be predicted perfectly by `X`: the estimate would be infinite.")
    scale = float(np.sum((y - Z @ f) ** 2)) / (len(y) - d) if family == "gaussian" else 1.0
    A, shift = design.user_units()
    inner = np.linalg.inv(H) * scale
    if person is not None:
        _, numbers = np.unique(person[whole], return_inverse=True)
        scores = np.zeros((int(numbers.max()) + 1, d))
        np.add.at(scores, numbers, Z * psi[:, None])
        inner = np.linalg.inv(H) @ (scores.T @ scores) @ np.linalg.inv(H)
    found = Coefficients(A @ f + shift, A @ inner @ A.T, np.zeros((d, d)))
    return PrivateRegression(
        family=design.family,
        names=design.names,
        periods=design.periods,
        estimates=found,
        units=int(whole.sum()) if person is None else len(np.unique(person[whole])),
        counted=None,
        of="records" if person is None else "persons",
        link=design.link,
    )


def _score(family: str, y: Array, eta: Array) -> tuple[Array, Array]:
    """(residual, weight) of each row: the score is Z' residual, the information matrix Z' diag(weight) Z."""
    if family == "gaussian":
        return y - eta, np.ones(len(eta))
    if family == "poisson":
        mean = np.exp(np.minimum(eta, 50.0))
        return y - mean, mean
    if family == CLOGLOG:
        t = np.exp(np.clip(eta, -30.0, 4.0))
        event = t / np.expm1(t)
        return y * event - (1.0 - y) * t, t * event
    mean = 1.0 / (1.0 + np.exp(np.clip(-eta, -500.0, 500.0)))
    return y - mean, mean * (1.0 - mean)


def _person_periods(rows: Array, p: int, d: int) -> tuple[Array, Array]:
    """(Z, y): one row for each person and each period at risk; y is 1 in the period of the person's event."""
    last = rows[:, p].astype(np.int64)
    who = np.repeat(np.arange(len(rows)), last)
    period = np.arange(len(who)) - np.repeat(np.cumsum(last) - last, last)
    Z = np.zeros((len(who), d))
    Z[:, :p] = rows[who, :p]
    Z[np.arange(len(who)), p + period] = 1.0 / np.sqrt(p + 1.0)
    return Z, np.where(period == last[who] - 1, rows[who, p + 1], 0.0)
