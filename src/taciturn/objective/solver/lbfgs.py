"""Preconditioned L-BFGS, which minimises phi (see gradient_evaluator.py) in all repeats at once.

A step is accepted if the slope of phi at the end of the step is small enough. Values of phi are not compared,
because their differences lose digits.

The approximate inverse Hessian H is stored in compact form; it starts as the preconditioner P. The columns of
S are the steps s, and the columns of Y are the changes y of the gradient, the oldest first:

    H g = P g + S c - P Y u,   u = T^-1 S'g,   c = T^-T (D u + Y'P Y u - Y'P g),

where T is the upper triangle of S'Y, and D is the diagonal of S'Y. Each pair (s, y) adds one column to T^-1,
so a step costs only a few small products for all repeats together. In a convex problem any two points give a
valid pair (s, y), so rejected trial steps also add pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...core.types import Array
from .gradient_evaluator import GradientEvaluator
from .preconditioner import Preconditioner

_MEMORY = 24  # the number of pairs kept; when the memory is full, the older half is dropped
_OVERSHOOT = 0.9  # a step past the minimum is accepted if slope at its end <= this * |slope at its start|
_WINDOW = 4  # the rate of convergence is estimated from this many recent passes
_PATIENCE = 30  # stop after more than this many passes without progress: only rounding errors remain
_FRESH = 10  # about the number of passes that a solve with a new preconditioner needs


class Pairs:
    """The approximate inverse Hessians in compact form: one for each repeat, from its own pairs (s, y)."""

    def __init__(self, repeats: int, dimension: int) -> None:
        self._S = np.empty((repeats, _MEMORY, dimension))
        self._PY = np.empty((repeats, _MEMORY, dimension))
        self._T = np.zeros((repeats, _MEMORY, _MEMORY))  # T^-1
        self._YPY = np.zeros((repeats, _MEMORY, _MEMORY))
        self._D = np.zeros((repeats, _MEMORY))
        self._used = 0

    def clear(self) -> None:
        self._used = 0

    def direction(self, g: Array, Pg: Array) -> Array:
        """The search direction -H g of every repeat, (repeats, d)."""
        k = self._used
        if k == 0:
            return -Pg
        S, PY, T = self._S[:, :k], self._PY[:, :k], self._T[:, :k, :k]
        u = _times(T, _times(S, g))
        c = self._D[:, :k] * u + _times(self._YPY[:, :k, :k], u) - _times(PY, g)
        c = _times(T.transpose(0, 2, 1), c)
        return np.asarray(np.matmul(u[:, None, :], PY)[:, 0] - np.matmul(c[:, None, :], S)[:, 0] - Pg)

    def add(self, s: Array, y: Array, Py: Array, sy: Array) -> None:
        """Append the pair (s, y) to every repeat; Py = P y, sy = s . y."""
        if self._used == _MEMORY:
            self._forget(_MEMORY // 2)
        k = self._used
        if k:
            T = self._T[:, :k, :k]
            self._T[:, :k, k] = -_times(T, _times(self._S[:, :k], y)) / sy[:, None]
            self._T[:, k, :k] = 0.0
        self._T[:, k, k] = 1.0 / sy
        self._S[:, k], self._PY[:, k], self._D[:, k] = s, Py, sy
        cross = _times(self._PY[:, : k + 1], y)
        self._YPY[:, k, : k + 1] = cross
        self._YPY[:, : k + 1, k] = cross
        self._used = k + 1

    def _forget(self, oldest: int) -> None:
        """Drop the oldest pairs. The trailing block of T^-1 is the inverse of the trailing block of T."""
        for rows in (self._S, self._PY, self._D):
            rows[:, :-oldest] = rows[:, oldest:].copy()
        for square in (self._T, self._YPY):
            square[:, :-oldest, :-oldest] = square[:, oldest:, oldest:].copy()
        self._used -= oldest


@dataclass(frozen=True, eq=False)
class Point:
    """The state of every repeat: the model f, the gradient g at f, P g, and size = ||g||."""

    f: Array
    g: Array
    Pg: Array
    size: Array

    def move(self, other: Point, which: NDArray[np.bool_]) -> Point:
        """The state of `other` in the repeats `which`, and of `self` in the rest."""
        if which.all():
            return other
        row = which[:, None]
        return Point(
            np.where(row, other.f, self.f),
            np.where(row, other.g, self.g),
            np.where(row, other.Pg, self.Pg),
            np.where(which, other.size, self.size),
        )


def lbfgs(
    phi: GradientEvaluator,
    start: Array,
    target: Array,
    preconditioner: Preconditioner,
    most: int,
    known: Array | None = None,
) -> tuple[Array, Array]:
    """(f, gradient) with ||gradient|| <= target in every repeat. A pass is one evaluation of gradients.

    The result misses the target if `most` passes are not enough, or if rounding errors prevent progress.
    known : an approximation of the gradient at `start`, which saves one pass; None if it is not known.
    """
    g = phi.gradient(start) if known is None else known
    if (norms(g) <= target).all():
        return start, g if known is None else phi.gradient(start)
    preconditioner.ready(phi, start)
    at = Point(start, g, preconditioner.apply(phi, g), norms(g))
    pairs, history = Pairs(*start.shape), [float((at.size / target).max())]
    least, idle = history[0], 0
    for _ in range(most):
        active = at.size > target
        p = pairs.direction(at.g, at.Pg)
        p[~active] = 0.0
        f = at.f + p
        g = phi.gradient(f)
        to = Point(f, g, preconditioner.apply(phi, g), norms(g))
        y = g - at.g
        bend, slope = dots(y, p), dots(g, p)
        if not ((bend > 0.0) & np.isfinite(to.size) | ~active).all():
            break
        pairs.add(p, y, to.Pg - at.Pg, np.where(active, bend, 1.0))
        at = at.move(to, active & ((slope <= _OVERSHOOT * (bend - slope)) | (to.size <= target)))
        history.append(float((at.size / target).max()))
        idle = 0 if history[-1] < 0.7 * least else idle + 1
        least = min(least, history[-1])
        if history[-1] <= 1.0 or idle > _PATIENCE:
            break
        if _worth_rebuilding(history, preconditioner.cost(phi)):
            preconditioner.build(phi, at.f)
            at = replace(at, Pg=preconditioner.apply(phi, at.g))
            pairs.clear()
            history = history[-1:]
    return at.f, at.g


def _worth_rebuilding(history: list[float], cost: float) -> bool:
    """Whether rebuilding P would probably save passes, if the present P keeps its latest rate of convergence.

    history : after each pass, the largest ratio of a gradient's norm to its target.
    cost : the cost of a rebuild, in passes.
    """
    if len(history) <= max(_WINDOW, cost):
        return False
    rate = math.log(history[-1 - _WINDOW] / history[-1]) / _WINDOW
    return math.log(history[-1]) > rate * (cost + _FRESH)


def _times(A: Array, v: Array) -> Array:
    """A_r v_r for every repeat r."""
    return np.asarray(np.matmul(A, v[:, :, None])[:, :, 0])


def dots(a: Array, b: Array) -> Array:
    """a_r . b_r for every repeat r."""
    return np.asarray(np.vecdot(a, b))


def norms(a: Array) -> Array:
    """||a_r|| for every repeat r."""
    return np.sqrt(dots(a, a))
