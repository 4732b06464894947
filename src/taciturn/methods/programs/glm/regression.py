"""Regression: a program of sums whose estimates have valid standard errors (docs/inference.md).

    moments     three times: coordinates W in which rows vary equally, so that noise does the least harm
    outcome     the mean or the histogram of the outcome, for the first model, which is a constant
    scores      s = mean of omega psi x at a sequence of models; the next model should have s = 0
    hessian     H = minus the derivative of s: once for better steps, and again near the final model
    meat        V, the variance of one record's score

These are sums over all records, which are released with noise. psi is the residual, -w its derivative, and
omega the weight of a row x. The weight depends on the covariates of the row, or of all rows of the
person, or on the person's earlier periods, but never on the outcome of the row. So the score has mean 0 at
the true model. `regression_fit.py` computes estimates and standard errors from the releases. Coordinates and
models follow from earlier totals alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core.types import Array
from ....kernels import regression_rows as rows
from ....kernels.algebra import matrix_product, product, total, transposed_product
from ....kernels.arithmetic import exp, log
from ...sums import expressions as ex
from ...sums.expressions import Expression, Shapes, Values
from ..moments import cleaned, noise_edge, symmetric
from ..own_program import Program, ProgramFacts, Query, Step, Total

FAMILIES = ("binomial", "gaussian", "poisson", "hazard")
LINKS = ("logit", CLOGLOG := "cloglog")
OUTCOME, MOMENTS, SCORE, HESSIAN, MEAT = "outcome", "moments", "score", "hessian", "meat"
_KINDS = {MOMENTS: rows.MOMENTS, SCORE: rows.SCORE, HESSIAN: rows.HESSIAN, MEAT: rows.MEAT}
_CELLS = 40  # the number of cells into which the range of a Gaussian outcome is divided
GAUSSIAN_CUT = 2.5  # Gaussian residuals are clipped at this many standard deviations
_FLOOR = 1e-9  # a lower bound on the mean of the diagonal of the moments
_PRIOR = 4.0  # _PRIOR / d is the prior variance of a coordinate of the model
_LIFT = 0.3  # _LIFT times the noise edge is added to the eigenvalues of a Hessian: noise may hide that much
_STEP = 1.5  # the longest step, measured by how far it moves the margins
MOST_W = {"binomial": 0.25, "gaussian": 1.0, "poisson": rows.POISSON_W, "hazard": 1.0}
"""For each family, the largest slope of a residual, in units of the residual's clipping bound."""

_PLAN = (
    (MOMENTS, 0.02),
    (OUTCOME, 0.01),
    (MOMENTS, 0.03),
    *((SCORE, share) for share in (0.01, 0.02, 0.03)),
    (MOMENTS, 0.05),
    (SCORE, 0.03),
    (HESSIAN, 0.05),
    *((SCORE, share) for share in (0.03, 0.05, 0.08)),
    (HESSIAN, 0.18),
    *((SCORE, share) for share in (0.14, 0.22)),
    (MEAT, 0.05),
)
"""The kinds of sums in their order, with their shares of mu^2, the squared privacy budget."""

SCORE_BOUND = math.sqrt(1.0 + rows.SIDES * rows.SIDE * rows.SIDE)
"""A bound on the norm of a score with its three side numbers: w, psi^2, and 1 if the record is complete."""

HESSIAN_SHARE = 0.18
SCORE_SHARE = 0.36
"""The smallest shares of mu^2 for the last Hessian and for the scores after it."""


@dataclass(frozen=True)
class RegressionTerm(Expression):
    """The contribution of a record to one sum of a regression (`kernels/regression_rows.py`)."""

    family: str
    kind: str

    @property
    def aligned(self) -> bool:
        """True for moments, Hessian and meat, which are sums of outer products."""
        return self.kind != SCORE

    def width(self, columns: int, shapes: Shapes) -> int:
        d = shapes["f"][0]
        return d + rows.SIDES if self.kind == SCORE else d * (d + 1) // 2

    def of(self, X: Array, values: Values) -> Array:
        return self.of_units(X, np.arange(len(X) + 1), values)

    def of_units(self, X: Array, starts: NDArray[np.int64], values: Values) -> Array:
        X = np.ascontiguousarray(X, dtype=np.float64)
        W, f, numbers, kind = values["W"], values["f"], values["numbers"], _KINDS[self.kind]
        if self.family == "hazard":
            return rows.hazard_rows(X, W, f, numbers, kind)
        family = FAMILIES.index(self.family)
        return rows.regression_rows(X, starts, W, f, values["anchor"], numbers, family, kind)


class Score(NamedTuple):
    """One released score s at the model origin + W u.

    std : the standard deviation of the noise in s.   counted : the noisy share of complete records.
    weight, spread : the means of w and psi^2 over complete records.   side : the std of the noise in these
        three numbers (counted, weight, spread).
    """

    u: Array
    s: Array
    std: float
    weight: float
    spread: float
    counted: float
    side: float


class Matrix(NamedTuple):
    """A released matrix, and the standard deviation of the noise in its entries."""

    values: Array
    std: float


@dataclass(frozen=True, eq=False)
class RegressionState:
    """The state of a regression after t sums: the model f, and the facts about the last coordinates.

    square : b^2. A row that is longer than b in the coordinates W has a weight below 1.
    levels, expected : the second moments along these coordinates, with row weights and without.
    origin, u : f = origin + W u.   anchor : the model that sets the clipping bounds of Poisson residuals.
    reach : the clipping bound of Gaussian residuals.
    before : the number of scores in these coordinates before the last Hessian.
    shape : the denoised eigenvalues and eigenvectors of the Hessian, from which steps are computed.
    """

    t: int
    f: Array
    W: Array
    square: float
    levels: Array
    expected: Array
    origin: Array
    anchor: Array
    u: Array
    reach: float = 1.0
    scores: tuple[Score, ...] = ()
    before: int = 0
    shape: tuple[Array, Array] | None = None
    hessian: Matrix | None = None
    meat: Matrix | None = None


@dataclass(frozen=True)
class Regression(Program):
    """The public half of a regression: from noisy totals, it decides what to sum next.

    dimension : the number of coefficients, including the constant or, for a hazard, one for each period.
    covariates : the number of coefficients without the constant or the periods.
    top : the bound at which outcomes are clipped.   clip : b / sqrt K, with the effective dimension K.
    persons : whether a unit is a person, with any number of rows.
    link : "logit" or "cloglog" for a hazard; "" for the usual link of the other families.
    """

    family: str
    dimension: int
    covariates: int
    top: float = 1.0
    clip: float = 1.25
    persons: bool = False
    link: str = ""

    def steps(self, facts: ProgramFacts) -> Sequence[Step]:
        triangle = self.dimension * (self.dimension + 1) // 2
        found = []
        for t, (kind, share) in enumerate(_PLAN, start=1):
            name = f"{kind} {t}"
            if kind == OUTCOME:
                length = {"gaussian": _CELLS, "hazard": 2}.get(self.family, 1)
                bound = math.sqrt(2.0) if self.family == "hazard" else 1.0
                found.append(Step(name, length, bound, share, aligned=self.family == "gaussian"))
            elif kind == SCORE:
                found.append(Step(name, self.dimension + rows.SIDES, SCORE_BOUND, share))
            else:
                found.append(Step(name, triangle, 1.0, share, aligned=True))
        return found

    @property
    def periods(self) -> int:
        return self.dimension - self.covariates

    @property
    def most_w(self) -> float:
        return MOST_W[self.family]

    def start(self) -> RegressionState:
        zero, one = np.zeros(self.dimension), np.ones(self.dimension)
        return RegressionState(0, zero, np.eye(self.dimension), 1.0, one, one, zero, zero, zero)

    def query(self, state: RegressionState) -> Query:
        kind, _ = _PLAN[state.t]
        if kind == OUTCOME:
            if self.family == "hazard":
                scale = ex.as_expression([1.0 / self.periods, 1.0])
                return Query(ex.columns(self.covariates, self.covariates + 1) * scale)
            y = ex.columns(self.dimension)
            if self.family == "gaussian":
                return Query(ex.cells(y, [2.0 * k / _CELLS - 1.0 for k in range(_CELLS + 1)]))
            return Query(y * (1.0 / self.top))
        flags = [float(self.persons), float(self.link == CLOGLOG)]
        numbers = [state.square, state.reach, self.top, self.most_w, *flags]
        values = {"W": state.W, "f": state.f, "anchor": state.anchor, "numbers": numbers}
        return Query(RegressionTerm(self.family, kind), values)

    def advance(self, state: RegressionState, released: Total) -> RegressionState:
        kind, _ = _PLAN[state.t]
        scale = state.square * self.most_w
        if kind == HESSIAN:
            noise = released.std * scale
            levels, vectors, _ = cleaned(released.values * scale, noise, 0.0, _FLOOR)
            lifted = np.maximum(levels, 0.0) + _LIFT * noise_edge(self.dimension, noise)
            found = Matrix(symmetric(released.values * scale), noise)
            state = replace(state, hessian=found, shape=(lifted, vectors), before=len(state.scores))
        elif kind == MEAT:
            scale = state.square if self.persons else scale
            state = replace(state, meat=Matrix(symmetric(released.values * scale), released.std * scale))
        else:
            after = {OUTCOME: self._outcome, MOMENTS: self._moments, SCORE: self._score}[kind]
            state = after(state, released)
        return replace(state, t=state.t + 1)

    def result(self, state: RegressionState) -> RegressionState:
        return state

    def _outcome(self, state: RegressionState, released: Total) -> RegressionState:
        """The constant model that fits the mean of the outcome."""
        values, std, reach = released.values, released.std, 1.0
        if self.family == "gaussian":
            eta, spread = _location(values, std)
            reach = GAUSSIAN_CUT * (spread + 1.0 / _CELLS)
        elif self.family == "poisson":
            eta = log(min(max(float(values[0]), std), 1.0) * self.top)
        else:
            rate = float(values[0])
            if self.family == "hazard":
                rate = max(float(values[1]), std) / max(rate * self.periods, 1.0)
            rate = min(max(rate, std), 1.0 - std, 0.999)
            eta = log(-log(1.0 - rate)) if self.link == CLOGLOG else log(rate / (1.0 - rate))
        f = np.zeros(self.dimension)
        f[self.covariates :] = eta * math.sqrt(self.covariates + 1.0)
        return replace(state, f=f, origin=f, anchor=f, reach=reach)

    def _moments(self, state: RegressionState, released: Total) -> RegressionState:
        """Coordinates in which rows vary equally, as far as the noise allows.

        If a level (second moment along a coordinate) is lower than before, the reason may be that the rows of
        a rare category now have lower weights. Such a direction is not stretched again, because that would
        lower these weights further.
        """
        noise = released.std * state.square
        levels, vectors, _ = cleaned(released.values * state.square, noise, 0.0, _FLOOR)
        levels = np.maximum(levels, 0.0)
        hidden = 0.5 * noise_edge(self.dimension, noise)
        known = product(vectors * vectors, state.expected) if state.square > 1.0 else np.zeros(self.dimension)
        scale, reach = np.maximum(levels + hidden, known), state.reach
        scaled = levels / scale
        if self.family == "gaussian" and state.scores:
            last = state.scores[-1]
            reach *= min(GAUSSIAN_CUT * normal_spread(last.spread + 1.5 * last.side), 1.0)
        return replace(
            state,
            W=matrix_product(state.W, np.ascontiguousarray(vectors.T)) / np.sqrt(scale),
            square=self.clip * self.clip * max(1.0, total(scaled)),
            levels=scaled,
            expected=np.where(known >= levels + hidden, 1.0, scaled),
            origin=state.f,
            anchor=state.f,
            u=np.zeros(self.dimension),
            reach=reach,
            scores=(),
        )

    def _score(self, state: RegressionState, released: Total) -> RegressionState:
        """The model at which the score should be 0, from all scores in these coordinates together."""
        d = self.dimension
        scale = math.sqrt(state.square) * (state.reach if self.family == "gaussian" else 1.0)
        side = released.values[d:] / rows.SIDE
        counted = min(max(float(side[2]), 0.02), 1.0)
        score = Score(
            u=state.u,
            s=released.values[:d] * scale,
            std=released.std * scale,
            weight=min(max(float(side[0]) / counted, 0.02), 1.0) * self.most_w,
            spread=min(max(float(side[1]) / counted, 0.01), 1.0),
            counted=float(side[2]),
            side=released.std / rows.SIDE,
        )
        scores = (*state.scores, score)
        weights = [(k + 1) / (one.std * one.std) for k, one in enumerate(scores)]
        u, s, v = average(scores, weights)
        move = self._step(state, s, v, score.weight)
        size = math.sqrt(total(move * move))
        if self.family != "gaussian" and size > _STEP:
            move = move * (_STEP / size)
        u = u + move
        return replace(state, u=u, f=state.origin + product(state.W, u), scores=scores)

    def _step(self, state: RegressionState, s: Array, v: float, weight: float) -> Array:
        """H^-1 s, with each component shrunk if it is small compared with the noise, of variance v."""
        prior = _PRIOR / self.dimension
        if state.shape is None:
            H = weight * np.maximum(state.levels, 1.0 - state.levels)
            return s * H * prior / (H * H * prior + v)
        levels, vectors = state.shape
        along = product(vectors, s) * levels * prior / (levels * levels * prior + v)
        return transposed_product(vectors, along)


def average(scores: Sequence[Score], weights: Sequence[float]) -> tuple[Array, Array, float]:
    """The weighted means of points and scores, and the variance of the noise in the mean score."""
    whole = math.fsum(weights)
    shares = [weight / whole for weight in weights]
    u, s, v = np.zeros_like(scores[0].u), np.zeros_like(scores[0].s), 0.0
    for share, one in zip(shares, scores, strict=True):
        u, s, v = u + share * one.u, s + share * one.s, v + (share * one.std) * (share * one.std)
    return u, s, v


def _location(shares: Array, std: float) -> tuple[float, float]:
    """Mean and standard deviation of an outcome in [-1, 1], from the noisy share of records in each cell."""
    kept = np.where(shares > 2.0 * std, shares, 0.0)
    whole = total(kept)
    kept = kept / whole if whole > 0.0 else np.full(len(shares), 1.0 / len(shares))
    middles = (2.0 * np.arange(len(shares)) + 1.0) / len(shares) - 1.0
    mean = total(kept * middles)
    off = middles - mean
    return mean, math.sqrt(total(kept * off * off))


def normal_spread(square: float) -> float:
    """The standard deviation of a centred normal variable that, clipped to [-1, 1], has this mean square."""
    low, high = 1e-3, 50.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _cut_square(middle) < square else (low, middle)
    return low


def _cut_square(sd: float) -> float:
    """E min(sd^2 Z^2, 1) for a standard normal Z."""
    k = min(1.0 / sd, 37.0)
    density = exp(-0.5 * k * k) / math.sqrt(2.0 * math.pi)
    tail = _normal_tail(k, density)
    return sd * sd * (1.0 - 2.0 * tail - 2.0 * k * density) + 2.0 * tail


def _normal_tail(k: float, density: float) -> float:
    """P(Z > k) for k >= 0, to 1e-7 [Abramowitz and Stegun, 26.2.17]: the same bits on every machine."""
    t = 1.0 / (1.0 + 0.2316419 * k)
    series = 0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429)))
    return density * t * series
