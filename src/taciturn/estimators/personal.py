"""The own model f of a site minimises (mean loss of the site's rows) + (a/2) ||f - f_joint||^2.

f_joint is the joint model, which all sites trained together. The joint model was already released, so its use
here costs no extra privacy. The site's rows are used without noise, so the own model, its strength `a` and
all its scores must not leave the site.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from ..core.types import Array
from ..data.tables.unit_ball import UnitBallScaling
from ..objective.losses import Loss

STRENGTHS = (*np.geomspace(1.0, 1e-7, 15).tolist(),)
PERSONAL = "made from one site's rows without noise: not to be shared"
_FOLDS = 5
_FEWEST = 2 * _FOLDS  # the smallest number of rows for an own model


@dataclass(frozen=True, eq=False)
class OwnRows:
    """A site's rows inside the unit ball, the targets, (outputs, rows), and the weight of each row."""

    Z: Any
    targets: Array
    weights: Array

    def some(self, keep: NDArray[Any]) -> OwnRows:
        """A subset of the rows."""
        return OwnRows(self.Z[keep], self.targets[:, keep], self.weights[keep])


Objective = Callable[[Array, OwnRows], tuple[float, Array]]
"""The weighted mean loss of the models F, (outputs, entries), and its gradient."""


def own_objective(loss: Loss, *, together: bool) -> Objective:
    """The objective: the sum of the losses of all outputs; with `together`, the softmax loss.

    An output is one linear model; its targets are numbers, or 1 for rows of its class and -1 for others.
    """

    def apart(F: Array, rows: OwnRows) -> tuple[float, Array]:
        margins, y = np.asarray(rows.Z @ F.T).T, rows.targets
        regression = loss.kind == "regression"
        z, sign = (y - margins, -1.0) if regression else (y * margins, y)
        share = rows.weights / rows.weights.sum()
        slope = rows.Z.T @ (loss.slope(z) * sign * share).T
        return float(np.sum(loss.value(z) * share)), np.asarray(slope.T)

    def jointly(F: Array, rows: OwnRows) -> tuple[float, Array]:
        scores, true = np.asarray(rows.Z @ F.T), rows.targets.T > 0
        share = (rows.weights / rows.weights.sum())[:, None]
        value = logsumexp(scores, axis=1, keepdims=True) - scores[true][:, None]
        slope = rows.Z.T @ ((softmax(scores, axis=1) - true) * share)
        return float(np.sum(value * share)), np.asarray(slope.T)

    return jointly if together else apart


def lean(objective: Objective, rows: OwnRows, joint: Array, strength: float, start: Array) -> Array:
    """argmin over F of objective(F) + (strength/2) ||F - joint||^2."""

    def value(flat: Array) -> tuple[float, Array]:
        F = flat.reshape(joint.shape)
        loss, slope = objective(F, rows)
        away = F - joint
        return loss + 0.5 * strength * float(np.sum(away * away)), (slope + strength * away).ravel()

    found = minimize(value, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return np.asarray(found.x.reshape(joint.shape))


def own_model(objective: Objective, rows: OwnRows, joint: Array) -> tuple[Array, float]:
    """(F, a): the own model, and its strength `a` from cross-validation.

    `a` is the largest value of a grid at which the loss is within one standard error of the smallest loss. So
    a site with few rows stays close to the joint model. The grid includes infinity, which gives the joint
    model itself. With fewer than 10 rows, `a` is infinite.
    """
    count = len(rows.weights)
    if count < _FEWEST:
        return joint, float("inf")
    fold = np.random.default_rng(0).permutation(np.arange(count) % _FOLDS)
    costs = np.zeros((_FOLDS, 1 + len(STRENGTHS)))
    for k in range(_FOLDS):
        known, held = rows.some(fold != k), rows.some(fold == k)
        F = joint
        costs[k, 0] = objective(joint, held)[0]
        # from the strongest to the weakest: each fit starts at the result of the previous fit
        for j, strength in enumerate(STRENGTHS, start=1):
            F = lean(objective, known, joint, strength, F)
            costs[k, j] = objective(F, held)[0]
    above = costs - costs[:, [int(np.argmin(costs.mean(axis=0)))]]
    error = above.std(axis=0, ddof=1) / np.sqrt(_FOLDS)
    best = int(np.argmax(above.mean(axis=0) <= error))  # the grid begins with the strongest value
    if best == 0:
        return joint, float("inf")
    return lean(objective, rows, joint, STRENGTHS[best - 1], joint), STRENGTHS[best - 1]


def ball_of(model: Any) -> UnitBallScaling:
    """The scaling of a fitted model, from rows into the unit ball."""
    return UnitBallScaling(model.data_norm_, bool(model.fit_intercept), float(model.intercept_scaling))


def joint_vectors(model: Any, ball: UnitBallScaling, unit: float) -> Array:
    """The coefficients for rows in the unit ball, (outputs, entries), from a model's coef and intercept."""
    coef, constant = np.atleast_2d(model.coef_) / unit, np.atleast_1d(model.intercept_) / unit
    if not ball.intercept:
        return np.asarray(coef * ball.bound)
    return np.hstack([coef * (ball.bound / ball.share), (constant / ball.constant)[:, None]])
