"""The public part of masked descent: gradient descent on noisy sums. Masks hide what each site adds to them.

    round 1     M, the second moments of all rows, or an approximation of them (`moments.py`)
    round t     g, the mean gradient at y(t); then
                y = x + beta (x - x_before),   x_new = y - (bend M + reg + p_t)^-1 (g + reg y)

x is the last point, x_new the next point, y the point of the gradient, and beta the momentum. `reg` is the
regularization, and `bend` the mean curvature of the loss, increased by `gain` in each round. `step_size.py`
sets the damping p_t and the model, from released numbers alone. Every site computes all of this on its own,
to the same bits. No code in this file sees rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.errors import ParameterError
from ...core.types import Array
from ...kernels.algebra import total
from ...objective.softmax import Softmax
from ...privacy.accounting.sensitivity import REACH
from ...privacy.loss_facts import LossFacts
from ..sums.program import PrivateHalf, PublicHalf
from . import step_size
from .descent_losses import TrainingLoss, loss_facts
from .descent_rows import MarginShare, SoftmaxShare
from .moments import Full, Shape, Wide


@dataclass(frozen=True, eq=False)
class DescentState:
    """The public state after t rounds; arrays (repeats, outputs, d), all computed from releases.

    x : the last point.   y : the point of the next gradient.   f : the result if the run ended now.
    sum_y, sum_g : the weighted sums of points and gradients so far; step k has weight k.
    shapes : for each repeat, the estimate of M from the first release.
    """

    t: int
    x: Array
    y: Array
    f: Array
    sum_y: Array
    sum_g: Array
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Descent(PublicHalf):
    """The public half of masked descent, which sees only noisy sums; its fields are public facts of a run.

    outputs : the number of models: one for each class of softmax, else 1.
    full : whether the first release contains all second moments (True), or only means and squares (False).
    noise : the standard deviation of the noise in the sum of all sites, round by round.
    regularization : the weight of ||f||^2 / 2, which is added to the mean loss.
    constant : the public value of the last column, if it is the same in every row.
    """

    training_loss: TrainingLoss
    features: int
    outputs: int
    full: bool
    noise: tuple[float, ...]
    regularization: float
    constant: float | None

    @property
    def loss(self) -> LossFacts:
        """The facts that the accountant needs about the loss that the descent minimises."""
        return loss_facts(self.training_loss)

    @property
    def dimension(self) -> int:
        """The number of coefficients of all models together."""
        return self.features * self.outputs

    @property
    def steps(self) -> int:
        """The number of gradients."""
        return len(self.noise) - 1

    def start(self, repeats: int) -> DescentState:
        """t = 0: the model is 0."""
        zero = np.zeros((repeats, self.outputs, self.features))
        return DescentState(0, zero, zero, zero, zero, zero)

    def query(self, state: DescentState) -> Array | None:
        """The point of the next gradient; None if the next sum is the moments of the rows."""
        if state.t == 1 and np.any(state.y):
            raise ParameterError(
                "`state.y` must be 0 in round 2, because the noise of this round is set for the slopes at 0."
            )
        return None if state.t == 0 else state.y

    def result(self, state: DescentState) -> Array:
        """The result if the run ended after this round: the models, (repeats, outputs x d)."""
        return state.f.reshape(len(state.f), -1)

    def private_half(self, rows: Any, units: int) -> PrivateHalf:
        """The private half of a site with these rows."""
        kind = SoftmaxShare if isinstance(self.training_loss, Softmax) else MarginShare
        return kind(rows, self.training_loss, total=units, full=self.full, constant=self.constant)

    def advance(self, state: DescentState, released: Array) -> DescentState:
        """The state after one more round, in which this sum was released, (repeats, length)."""
        if state.t == 0:
            kind = Full if self.full else Wide
            shapes = tuple(kind.from_release(row, self.noise[0], self.constant) for row in released)
            return replace(state, t=1, shapes=shapes)
        moved = [self._step(state, k, row.reshape(self.outputs, -1)) for k, row in enumerate(released)]
        x, y, f, sum_y, sum_g = (np.stack(part) for part in zip(*moved, strict=True))
        return replace(state, t=state.t + 1, x=x, y=y, f=f, sum_y=sum_y, sum_g=sum_g)

    def _step(self, state: DescentState, k: int, g: Array) -> tuple[Array, ...]:
        """(x, y, f, sum_y, sum_g) of repeat k after one more gradient."""
        step, shape, reg = state.t, state.shapes[k], self.regularization
        x, y = state.x[k], state.y[k]
        g = _centre(g) + reg * y
        sum_y, sum_g = state.sum_y[k] + step * y, state.sum_g[k] + step * g
        weight = 0.5 * step * (step + 1.0)
        mean_y, mean_g = sum_y / weight, sum_g / weight
        bends = step_size.mean_bends(shape, mean_y, self.training_loss)
        damping = self._damping(shape, step, bends, mean_y, mean_g)
        grown = 1.0 + shape.gain * (step - 1.0)
        now = [bend * grown for bend in step_size.mean_bends(shape, y, self.training_loss)]
        new = y - _solve(shape, now, reg + damping, g)
        f = mean_y - _solve(shape, bends, reg + step_size.RIDGE * damping, mean_g)
        return new, _within(new + step_size.MOMENTUM * (new - x)), f, sum_y, sum_g

    def _damping(self, shape: Shape, step: int, bends: list[float], mean_y: Array, mean_g: Array) -> float:
        """The damping p_t. All steps together then last for the time that `step_size.run_time` computes."""
        weight, variance = 0.5 * step * (step + 1.0), 0.0
        for k in range(1, step + 1):
            part = k * self.noise[k] / weight
            variance += part * part
        reg, outputs = self.regularization, zip(bends, mean_y, mean_g, strict=True)
        signal = np.concatenate([shape.at(bend * shape.times(y) + reg * y - g) for bend, y, g in outputs])
        H = np.concatenate([bend * shape.levels + reg for bend in bends])
        tau = step_size.solution_scale(signal, H, variance)
        whole = self.noise[-1] / math.sqrt(self.steps)
        levels = np.concatenate([bend * shape.all_levels + reg for bend in bends])
        time = step_size.run_time(levels, tau, whole)
        # momentum beta makes steps 1 / (1 - beta) times as long
        return self.steps / ((1.0 - step_size.MOMENTUM) * time)


def _solve(shape: Shape, bends: list[float], p: float, g: Array) -> Array:
    """(bend M + p)^-1 g for every output."""
    return np.stack([shape.solve(bend, p, row) for bend, row in zip(bends, g, strict=True)])


def _centre(g: Array) -> Array:
    """g minus its mean over the classes: softmax gradients add up to 0, so the mean is noise."""
    if len(g) == 1:
        return g
    mean = np.zeros(g.shape[1])
    for row in g:
        mean = mean + row
    return np.asarray(g - mean / len(g))


def _within(y: Array) -> Array:
    """y, shortened to norm `REACH` if it is longer."""
    size = math.sqrt(total(np.ravel(y * y)))
    return y if size <= REACH else y * (REACH / size)
