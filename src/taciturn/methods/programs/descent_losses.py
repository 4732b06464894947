"""The losses that masked descent (`masked_descent.py`) can minimise, with their slope and mean curvature."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import ClassVar

import numpy as np

from ...core.types import Array
from ...kernels.algebra import total
from ...kernels.arithmetic import compiled, exp, log
from ...objective.losses import Kind, Logistic, Loss, SmoothHinge
from ...objective.softmax import Softmax
from ...privacy.loss_facts import LossFacts

_EXP_MAX = 700.0


@dataclass(frozen=True)
class BoundedLogistic:
    """L(z) = exp(-z)/2 for z >= 0, (1 - z)/2 below; |L'| <= 1/2, L'' <= 1/2.

    This loss replaces the logistic loss. The largest slope is half that of the logistic loss, so a record
    moves the sum of slopes half as far. Both losses have the same minimiser: if P(y = 1) = 1 / (1 + exp(-u)),
    the mean slope is 0 at f.x = u. Among all losses with this property and |slope| <= 1/2, this loss is the
    steepest.

    >>> BoundedLogistic().slope(np.array([-3.0, 0.0, 1.0])).round(3).tolist()
    [-0.5, -0.5, -0.184]
    """

    name: ClassVar[str] = "bounded-logistic"
    kind: ClassVar[Kind] = "classification"
    slope_bound: ClassVar[float] = 0.5
    curvature_bound: ClassVar[float] = 0.5

    def value(self, z: Array) -> Array:
        return np.asarray(0.5 * np.exp(-np.clip(z, 0.0, _EXP_MAX)) + 0.5 * np.maximum(-z, 0.0))

    def slope(self, z: Array) -> Array:
        return self.slope_in_place(np.array(z, dtype=np.float64))

    def slope_in_place(self, z: Array) -> Array:
        """L'(z) = -exp(-max(z, 0)) / 2."""
        np.clip(z, 0.0, _EXP_MAX, out=z)
        np.negative(z, out=z)
        np.exp(z, out=z)
        return np.multiply(z, -0.5, out=z)

    def curvature(self, z: Array) -> Array:
        return np.where(z >= 0, 0.5 * np.exp(-np.clip(z, 0.0, _EXP_MAX)), 0.0)


TrainingLoss = Loss | Softmax
"""The losses that the descent can minimise."""


def loss_facts(loss: TrainingLoss) -> LossFacts:
    """The facts that the accountant needs about the loss that the descent minimises."""
    names = [entry.name for entry in fields(loss)] if is_dataclass(loss) else []
    numbers = {name: float(getattr(loss, name)) for name in names}
    return LossFacts(loss.name, loss.slope_bound, loss.curvature_bound, loss.kind, numbers)


def bend(loss: TrainingLoss, u: Array, output: int, means: Array) -> Array:
    """The expected curvature E L'' for a record with margin (or log-odds) u of output number `output`.

    `means` are the mean margins of all outputs. For the logistic losses and softmax, u gives the
    probabilities of the labels. For the hinge, both labels have probability 1/2, and the result is at least a
    tenth of the largest curvature. For other losses the result is half of the largest curvature.
    """
    if isinstance(loss, Softmax):
        rest = exps(np.clip(np.delete(means, output), -_EXP_MAX / 2, _EXP_MAX / 2))
        odds = exps(-np.minimum(np.abs(u - log(total(rest))), _EXP_MAX))
        return np.asarray(odds / ((1.0 + odds) * (1.0 + odds)) * loss.classes / (loss.classes - 1))
    if isinstance(loss, Logistic | BoundedLogistic):
        tail = exps(-np.minimum(np.abs(u), _EXP_MAX))
        small = tail / (1.0 + tail)  # sigma(-|u|)
        return np.asarray(small / (1.0 + tail) if isinstance(loss, Logistic) else 0.5 * small)
    most = loss.curvature_bound
    if not isinstance(loss, SmoothHinge):
        return np.full_like(u, 0.5 * most)
    return np.maximum(0.5 * (loss.curvature(u) + loss.curvature(-u)), 0.1 * most)


@compiled
def exps(x: Array) -> Array:
    """e^x of every entry, for |x| <= 708, with the same bits on every machine."""
    result = np.empty_like(x)
    for i in range(len(x)):
        result[i] = exp(x[i])
    return result
