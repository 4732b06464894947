"""Estimates and standard errors from the released sums of a regression (`regression.py`).

    D           H^-1 s, from the mean score s at the mean point;   estimate  f = f0 + W (u + D)
    variance    v' (V/n + v_s I + (std_h^2 / 2) (|D|^2 I + D D')) v     v = H^-1 W'e_j
                the terms: sampling; noise of the score; noise E of H, which moves the estimate by H^-1 E D
                `_bends` adds a term for the effect of the link's curvature on a few long rows

H is the Hessian, V the variance of one record's score (the meat) and f0 + W u the mean point; v_s and std_h^2
are the variances of the noise in s and in H. Given H, noise e in s moves the estimate by exactly H^-1 e,
however noisy H is. Intervals are refused if, for example, noise hides the smallest eigenvalue of H, or if D
is so long that the curvature of the link would move the estimate by more than a standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ....core.types import Array
from ....kernels.regression_rows import poisson_reach
from ..moments import noise_edge
from .regression import CLOGLOG, Regression, RegressionState, Score, average

_NEAR = 0.1  # early scores within this distance of the estimate (in margins or clipping bounds) are used too
_CURVE = 0.05  # the curvature of the link changes a score by up to _CURVE D' diag(levels) D
_CLOGLOG_CURVE = 0.2  # the same factor for the complementary log-log link, whose slope changes faster
_LEAST_SAMPLING = 0.05  # the least ratio of V to the variance in a correct model without row weights
_LEAST_INSIDE = 0.8  # the smallest allowed share of residuals that are not clipped
_LEAST_COUNTED = 0.03  # the smallest allowed share of complete records; a smaller one may be pure noise
_MOST_SPREAD = 1.3  # the largest ratio of variance and mean of counts that a Poisson model allows


@dataclass(frozen=True, eq=False)
class RegressionFit:
    """The model f, and the covariance of its error in two parts: from sampling and from noise.

    reason : why intervals would not be valid; "" if they are valid.
    shortfall : the factor by which n mu (units times budget) is too small. At most 1 if intervals are valid;
        otherwise 0 if a larger n mu would not help, and infinite if the factor is not known.
    weakest : direction in which f is least certain.   counted : share of complete records, standard error.
    """

    f: Array
    sampling: Array
    privacy: Array
    shortfall: float
    weakest: Array
    reason: str
    counted: tuple[float, float]


def fit_regression(program: Regression, state: RegressionState, units: int) -> RegressionFit:
    """The estimate after the last sum."""
    if state.hessian is None or state.meat is None:
        raise ValueError("`state` must be the state after the last sum.")
    H, V, std = state.hessian.values, state.meat.values, state.hessian.std
    used = _late_scores(program, state)
    weights = [1.0 / (one.std * one.std) for one in used]
    u, s, v = average(used, weights)
    inside = float(np.average([one.weight for one in used], weights=weights))
    spread = float(np.average([one.spread for one in used], weights=weights))
    if program.family == "gaussian":
        V = V * (1.0 if program.persons else spread) * state.reach * state.reach
    d, edge = len(H), noise_edge(len(H), std)
    levels, vectors = np.linalg.eigh(H)
    least, weakest = float(levels[0]), state.W @ vectors[:, 0]
    inverse = (vectors / np.where(levels > 0.5 * edge, levels, 0.5 * edge)) @ vectors.T
    D = inverse @ s
    noise = v * np.eye(d) + 0.5 * std * std * (float(D @ D) * np.eye(d) + np.outer(D, D))
    A = state.W @ inverse
    most = H * spread * state.reach * state.reach / inside if program.family == "gaussian" else H
    chance = _between(V, most, math.inf if program.persons else 1.0) / units
    bent = _bends(program, state) * np.diag(inverse @ (chance + noise) @ inverse)
    sampling, privacy = A @ chance @ A.T, A @ noise @ A.T + (state.W * bent**2) @ state.W.T
    error = np.sqrt(np.maximum(np.diag(sampling + privacy), 0.0))
    counted = _counted(state.scores)
    bend = _CLOGLOG_CURVE if program.link == CLOGLOG else _CURVE
    curve = bend * float(D @ (state.levels * D)) * np.sqrt(np.einsum("ij,j,ij->i", A, state.levels, A))
    shortfall, reason = edge / least if least > 0 else math.inf, ""
    if counted[0] < _LEAST_COUNTED + 2.0 * counted[1]:
        shortfall, reason = 0.0, "hardly any record is complete: a column or the outcome cannot be read"
    elif shortfall > 1.0:
        reason = "the noise hides the relation between the columns and the outcome"
    elif program.family != "gaussian" and np.any(curve > error):
        shortfall = math.sqrt(float(np.max(curve / error)))
        reason = "the noise leaves the starting model too far from the estimate"
    elif program.family == "gaussian" and inside < _LEAST_INSIDE:
        shortfall, reason = 2.0, "too many residuals are clipped"
    elif program.family == "poisson" and spread > inside * _MOST_SPREAD + 3.0 * used[-1].side:
        shortfall, reason = 0.0, "the counts vary more than a Poisson regression allows"
    f = state.origin + state.W @ (u + D)
    return RegressionFit(f, sampling, privacy, shortfall, weakest, reason, counted)


def _late_scores(program: Regression, state: RegressionState) -> tuple[Score, ...]:
    """The scores after the last Hessian, and those just before it at points near the estimate."""
    first, near = state.before, _NEAR * (state.reach if program.family == "gaussian" else 1.0)
    while first > 1:
        off = state.scores[first - 1].u - state.u
        if math.sqrt(float(off @ (state.levels * off))) > near:
            break
        first -= 1
    return state.scores[first:]


def _bends(program: Regression, state: RegressionState) -> Array:
    """|w'/w| r for each coordinate. Times the variance, it is the error from the curvature of the link.

    If row weights multiply a level (the second moment along a coordinate) by t < 1, as for a rare category,
    rows in that direction are long, about r = b / sqrt t, and noise moves their margins so far that the link
    is not linear over this distance. A margin with an error of e gets a further error of up to |w'/w| e^2.
    For the logit |w'/w| = |1 - 2p| = sqrt(1 - 4w), where w is the entry of the Hessian / the level.
    """
    if program.family == "gaussian":
        return np.zeros(len(state.levels))
    t = np.clip(state.levels / np.maximum(state.expected, 1e-12), 1e-3, 1.0)
    r = np.asarray(math.sqrt(state.square) * (1.0 - t) / np.sqrt(t))
    if program.family == "poisson":  # a Poisson regression scales its rows by poisson_reach
        return r / float(poisson_reach(float(state.anchor[-1]) / math.sqrt(program.covariates + 1.0)))
    if program.link == CLOGLOG or state.hessian is None:
        return r
    w = np.diag(state.hessian.values) / np.maximum(state.levels, 1e-12)
    return np.asarray(r * np.sqrt(np.clip(1.0 - 4.0 * w, 0.0, 1.0)))


def _counted(scores: tuple[Score, ...]) -> tuple[float, float]:
    """The share of complete records, from all scores of the last coordinates, and its standard error.

    Only the average is clipped to [0, 1]: clipping each noisy share would make the average too small.
    """
    weights = np.array([1.0 / (one.side * one.side) for one in scores])
    share = float(np.average([one.counted for one in scores], weights=weights))
    return min(max(share, 0.0), 1.0), 1.0 / math.sqrt(float(weights.sum()))


def _between(V: Array, most: Array, largest: float) -> Array:
    """V, with its eigenvalues relative to `most` clipped to [_LEAST_SAMPLING, largest].

    The scores of records in a correct model have a covariance of at most `most`. The scores of persons may
    vary more, because the rows of a person depend on each other.
    """
    levels, vectors = np.linalg.eigh(most)
    kept = np.maximum(levels, 1e-12 * max(float(levels[-1]), 1e-12))
    root, back = vectors * np.sqrt(kept), vectors / np.sqrt(kept)
    inner, turn = np.linalg.eigh(back.T @ V @ back)
    half = root @ turn
    return np.asarray((half * np.clip(inner, _LEAST_SAMPLING, largest)) @ half.T)
