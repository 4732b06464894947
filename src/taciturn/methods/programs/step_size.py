"""The rule that sets step sizes and the final model of masked descent, from released numbers alone.

These are pure functions of released numbers and public facts, so they cost no privacy. Only the number of
releases and their shares of the budget are fixed before the run. Each function is a fixed sequence of
operations, so that every site gets the same bits.

The rule uses the public curvature to convert all gradients so far to gradients at one point. It finds the
scale tau of the solution that explains these gradients best. A long descent has a small bias but much noise.
From tau, the levels (eigenvalues of the second moments) and the known noise, the rule computes the descent
time with the least predicted loss. The final model is one further step, from the mean point with the mean
gradient; this step needs no release.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.types import Array
from ...kernels.algebra import total
from ...kernels.arithmetic import compiled, exp, log
from .descent_losses import TrainingLoss, bend
from .moments import Shape

FULL = 256  # the most columns for which all second moments are released
ROUNDS, ROUNDS_WIDE = 41, 81  # the usual rounds, for up to FULL columns and for more; 21 are 5 to 10% worse
SHARE = 0.03  # share of budget mu^2 for the first release; 0.01 is worse for d = 300, 0.06 and 0.1 as good
MOMENTUM = 0.7  # 0.4 to 0.7 work equally well, 0.7 is faster if the curvature decreases, 0.8 oscillates
RIDGE = 0.3  # damping of the last step (which needs no release) / damping of a round; 0.1 to 1 work
_STRETCH = 2.5  # multiplies the computed time: mean point and steps lag behind the flow in `run_time`
_CAP = 1.6  # noise alone may move a coordinate by at most _CAP times the scale tau of the signal
HEAVY = 4.0  # degrees of freedom of Student's t, the prior of the coordinates; it allows a few large ones
_MIDDLE, _WIDTH = 0.15, 0.4  # mean and std of log tau: margins are of order 1, and so are the coordinates
_RATIO = 1.1220184543019633  # 10^(1/20)
_DROP = 0.9231163463866358  # exp(-0.4^2 / 2)


def geometric(start: float, count: int, ratio: float = _RATIO) -> Array:
    """start, start * ratio, ..., computed by multiplication, because power functions round differently."""
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


_TAUS = geometric(0.05, 61)  # the scales that are tried, up to 50
_TIMES = geometric(1e-3, 121)  # the times that are tried, up to 1000
_NODES = 0.4 * np.arange(-13.0, 14.0)  # nodes of the trapezoid rule, nearly exact for a normal variable
_WEIGHTS = np.concatenate([_bell(14)[:0:-1], _bell(14)])


def mean_bends(shape: Shape, y: Array, loss: TrainingLoss) -> list[float]:
    """The mean curvature E L'' of each output, if margins are normal; the Hessian is about E L'' times M."""
    margins = [shape.margins(row) for row in y]
    means = np.array([mean for mean, _ in margins])
    pairs = enumerate(margins)
    return [total(bend(loss, mean + std * _NODES, k, means) * _WEIGHTS) for k, (mean, std) in pairs]


def solution_scale(s: Array, H: Array, variance: float) -> float:
    """The scale tau that explains s = H x + noise best, where x_j / tau follows Student's t."""
    return float(_TAUS[best_scale(s, H, variance, _TAUS, _MIDDLE, _WIDTH)])


@compiled
def best_scale(s: Array, H: Array, variance: float, taus: Array, middle: float, width: float) -> int:
    """The index of the tau in `taus` that explains s best, if log tau follows N(middle, width^2)."""
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
    """The total time of the descent: the time of least predicted loss, times _STRETCH, with an upper bound.

    Gradient flow for a time t on the mean of all gradients leaves, in each direction, a bias of
    tau exp(-H t) and a noise of whole (1 - exp(-H t)) / H, where `whole` is the noise in that mean.
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
