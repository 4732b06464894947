"""The blind rule: step size, number of steps and final model, from released numbers alone.

Pure functions of released numbers and public facts: they cost no privacy, and may adapt as they like. Only
the split of the budget over the releases is fixed beforehand. Each is a fixed sequence of operations, so that
every site comes to the same bits.

All gradients so far are carried to one point by the public curvature. The scale tau of the solution that
explains them best is found; from tau, the levels and the known noise follows the time of least predicted
loss. The model is one free step from the mean of all gradients at the mean of all points.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.types import Array
from ...kernels.algebra import total
from ...kernels.arithmetic import compiled, exp, log
from .descent_losses import TrainingLoss, bend
from .moments import Shape

FULL = 256  # columns up to which all second moments are released
ROUNDS, ROUNDS_WIDE = 41, 81  # 21: 5 to 10% worse; more: no better. Without correlations it takes longer
SHARE = 0.03  # of mu^2 for the first release; 0.01 is worse for d = 300, 0.06 and 0.1 change nothing
MOMENTUM = 0.7  # 0.4 to 0.7 are alike, 0.7 is quicker where the curvature falls, 0.8 swings
RIDGE = 0.3  # damping of the last, free step, in dampings of a round; 0.1 to 1 are alike
_STRETCH = 2.5  # the mean of all points lags behind the last one, and a step is slower than the flow
_CAP = 1.6  # noise alone moves no coordinate by more than this many times what the signal does
HEAVY = 4.0  # degrees of freedom of the solution's coordinates: a few, like an intercept, are far larger
_MIDDLE, _WIDTH = 0.15, 0.4  # log of their scale: margins are of order 1, and so is a coordinate


_RATIO = 1.1220184543019633  # 10^(1/20)
_DROP = 0.9231163463866358  # exp(-0.4^2 / 2)


def geometric(start: float, count: int, ratio: float = _RATIO) -> Array:
    """start, start * ratio, ...: each from the one before, so that no library's power has a say."""
    values = [start]
    while len(values) < count:
        values.append(values[-1] * ratio)
    return np.array(values)


def _bell(count: int) -> Array:
    """The normal density at 0, 0.4, 0.8, ..., times 0.4."""
    values, drop = [0.15957691216057307], _DROP
    while len(values) < count:
        values.append(values[-1] * drop)
        drop *= _DROP * _DROP
    return np.array(values)


_TAUS = geometric(0.05, 61)  # up to 50
_TIMES = geometric(1e-3, 121)  # up to 1000
_NODES = 0.4 * np.arange(-13.0, 14.0)  # the trapezoid rule is all but exact for means over a normal law
_WEIGHTS = np.concatenate([_bell(14)[:0:-1], _bell(14)])


def mean_bends(shape: Shape, y: Array, loss: TrainingLoss) -> list[float]:
    """E L'' over the rows for every output, margins taken as normal: its Hessian is about this times M."""
    margins = [shape.margins(row) for row in y]
    means = np.array([mean for mean, _ in margins])
    pairs = enumerate(margins)
    return [total(bend(loss, mean + std * _NODES, k, means) * _WEIGHTS) for k, (mean, std) in pairs]


def solution_scale(s: Array, H: Array, variance: float) -> float:
    """The scale tau that explains s = H x + noise best, where x_j / tau follows Student's t."""
    return float(_TAUS[best_scale(s, H, variance, _TAUS, _MIDDLE, _WIDTH)])


@compiled
def best_scale(s: Array, H: Array, variance: float, taus: Array, middle: float, width: float) -> int:
    """Which of `taus` explains s best, where log tau follows N(middle, width^2)."""
    best, found = -math.inf, 0
    for k in range(len(taus)):
        apart = (log(taus[k]) - middle) / width
        score = -0.5 * apart * apart
        for j in range(len(s)):
            spread = H[j] * taus[k]
            c = spread * spread + variance
            score -= 0.5 * log(c) + 0.5 * (HEAVY + 1.0) * log(1.0 + s[j] * s[j] / (c * HEAVY))
        if score > best:
            best, found = score, k
    return found


def run_time(H: Array, tau: float, whole: float) -> float:
    """How long to descend altogether: the time of least predicted loss, stretched and capped.

    Gradient flow for a time t on the mean of all gradients leaves, in each direction, a bias of
    tau exp(-H t) and a noise of whole (1 - exp(-H t)) / H.
    """
    return min(_STRETCH * float(_TIMES[_best_time(H, tau, whole)]) / whole, _CAP * tau / whole)


@compiled
def _best_time(H: Array, tau: float, whole: float) -> int:
    best, found = math.inf, 0
    for k in range(len(_TIMES)):
        risk = 0.0
        for j in range(len(H)):
            Ht = min(H[j] * _TIMES[k] / whole, 700.0)
            left = exp(-Ht)
            gone = 1.0 - left if Ht > 1e-5 else Ht
            bias, noise = tau * left, whole * gone
            risk += H[j] * bias * bias + noise * noise / max(H[j], 1e-9)
        if risk < best:
            best, found = risk, k
    return found
