"""The public part of whitened descent: gradient descent in coordinates in which rows vary equally.

The first sums over all sites are moments of the rows, from which `coordinates.py` computes the matrix W. The
other sums are gradients at a sequence of points:

    gradient    g = -(1/n) sum y psi x~ / q at f = W u;  x~ = W'x, label y, slope psi with psi ||x~|| <= q
    means       u_ and g_, the means of all points and gradients so far; step t has weight t^2
    model       an estimate of the solution u* from s = H u_ - g_ = H u* + noise, where H is the mean of
                psi' times the levels (the second moments along the coordinates); each coordinate of the
                estimate is shrunk towards 0 according to the known noise
    next point  from u_ to the model, and half as far beyond the model

Every site computes all of this on its own, to the same bits. No code in this file sees rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.types import Array
from ...kernels.algebra import matrix_product, product, solve_positive, total
from ...kernels.arithmetic import dot, log
from ...privacy.accounting.sensitivity import REACH
from ...privacy.loss_facts import LossFacts
from ..sums.program import PrivateHalf, PublicHalf
from . import step_size as rule
from .coordinates import Coordinates, Strength, WhitenedQuery
from .descent_losses import exps
from .descent_rows import WhitenedShare

GRADIENTS = 60  # the usual number of gradients
_RADIUS = 1.25  # the longest step, measured by how far it moves the margins
_TAUS = rule.geometric(0.01, 61, 1.1350556807493803)  # scales tau of the solution that are tried, up to 20
_WIDTH = 0.7  # the standard deviation of log tau
_NODES = 0.25 * np.arange(-16.0, 17.0)


@dataclass(frozen=True, eq=False)
class WhitenedState:
    """The public state after t sums; arrays (repeats, d), all computed from releases.

    u, y : the point of the next gradient, in the coordinates and as a model.   f : the model so far.
    sum_u, sum_g : the weighted sums of points and gradients so far; step k has weight k^2.
    """

    t: int
    u: Array
    y: Array
    f: Array
    sum_u: Array
    sum_g: Array
    coordinates: tuple[Coordinates, ...]


@dataclass(frozen=True)
class Whitened(PublicHalf):
    """The public half of whitened descent, which sees only noisy sums; its fields are public facts of a run.

    moments : the number of sums, at the start, that are moments.
    noise : the standard deviation of the noise in the sum of all sites, sum by sum.
    regularization : the weight of ||f||^2 / 2, which is added to the mean loss.
    constant : the public value of the last column, if it is the same in every row.
    """

    features: int
    moments: int
    noise: tuple[float, ...]
    strength: Strength
    regularization: float
    constant: float | None

    @property
    def loss(self) -> LossFacts:
        return LossFacts("logistic", 1.0, 0.25)

    @property
    def dimension(self) -> int:
        return self.features

    def start(self, repeats: int) -> WhitenedState:
        """t = 0: the model is 0, and the coordinates are those of the original rows."""
        zero = np.zeros((repeats, self.features))
        plain = Coordinates.of_rows(self.features)
        return WhitenedState(0, zero, zero, zero, zero, zero, (plain,) * repeats)

    def query(self, state: WhitenedState) -> WhitenedQuery:
        return WhitenedQuery(state.coordinates, None if state.t < self.moments else state.y)

    def result(self, state: WhitenedState) -> Array:
        return state.f

    def private_half(self, rows: Any, units: int) -> PrivateHalf:
        return WhitenedShare(rows, units, self.constant)

    def advance(self, state: WhitenedState, released: Array) -> WhitenedState:
        """The state after one more sum, (repeats, length)."""
        t = state.t + 1
        if t <= self.moments:
            last, noise = t == self.moments, self.noise[t - 1]
            pairs = zip(state.coordinates, released, strict=True)
            moved = (one.after(row, noise, self.strength, self.constant, last=last) for one, row in pairs)
            return replace(state, t=t, coordinates=tuple(moved))
        steps = [self._step(state, k, row) for k, row in enumerate(released)]
        u, y, f, sum_u, sum_g = (np.stack(part) for part in zip(*steps, strict=True))
        return replace(state, t=t, u=u, y=y, f=f, sum_u=sum_u, sum_g=sum_g)

    def _step(self, state: WhitenedState, k: int, g: Array) -> tuple[Array, ...]:
        """(u, y, f, sum_u, sum_g) of repeat k after one more gradient."""
        at, step = state.coordinates[k], state.t - self.moments + 1
        square = float(step * step)
        sum_u, sum_g = state.sum_u[k] + square * state.u[k], state.sum_g[k] + square * at.q * g
        weight, variance = self._weights(step, at.q)
        u, g = sum_u / weight, sum_g / weight
        H = mean_bend(at, u) * at.levels
        found = estimate(H * u - g, H, variance)
        found = self._regularized(at, H, found)
        away = found - u
        size = math.sqrt(at.margin_square(away))
        if size > _RADIUS:
            found = u + away * (_RADIUS / size)
        point = found + 0.5 * (found - u)
        f, y = product(at.W, found), product(at.W, point)
        far = math.sqrt(dot(y, y))
        if far > REACH:
            point, y = point * (REACH / far), y * (REACH / far)
        return point, y, f, sum_u, sum_g

    def _weights(self, step: int, q: float) -> tuple[float, float]:
        """sum t^2, and the variance of the mean gradient: sum t^4 std_t^2 / (sum t^2)^2."""
        weight = variance = 0.0
        for t in range(1, step + 1):
            part = t * t * q * self.noise[self.moments + t - 1]
            weight, variance = weight + t * t, variance + part * part
        return weight, variance / (weight * weight)

    def _regularized(self, at: Coordinates, H: Array, u: Array) -> Array:
        """The minimiser of (u - v)'H(u - v) + reg ||W v||^2 over v."""
        if self.regularization == 0.0:
            return u
        A = matrix_product(np.ascontiguousarray(at.W.T), at.W) * self.regularization + np.diag(H)
        return solve_positive(A, H * u)


def mean_bend(at: Coordinates, u: Array) -> float:
    """The mean of psi' over the rows, if margins are normal; the Hessian is about this mean times levels."""
    square = at.margin_square(u)
    mean = dot(at.mean, product(at.W, u))
    std = math.sqrt(max(square - mean * mean, 0.05 * square))
    tail = exps(-np.minimum(np.abs(mean + std * _NODES), 700.0))
    large = 1.0 / (1.0 + tail)  # sigma(|m|)
    a = min(max(at.kappa, 0.5), 1.0)
    weights = exps(-0.5 * _NODES * _NODES)  # not at import: the first call loads compiled code
    return total(weights * (tail * large * large * np.minimum(1.0, a / large))) / total(weights)


def estimate(s: Array, H: Array, variance: float) -> Array:
    """An estimate of x from s = H x + noise, if each x_j follows Student's t; its scale is fitted to s."""
    middle = log(2.0 / math.sqrt(len(s)))
    tau = float(_TAUS[rule.best_scale(s, H, variance, _TAUS, middle, _WIDTH)])
    scale = np.full(len(s), tau * tau)
    for _ in range(3):
        whole = H * H * scale + variance
        mean = s * H * scale / whole
        scale = (rule.HEAVY * tau * tau + mean * mean + scale * variance / whole) / (rule.HEAVY + 1.0)
    return np.asarray(s * H * scale / (H * H * scale + variance))
