"""Preconditioned L-BFGS on all repeats at once; a step is judged by slopes alone, since values lose digits.

The inverse Hessian in compact form, H0 = P, pairs s (steps) and y (changes of the gradient), oldest first:

    H g = P g + S c - P Y u,   u = T^-1 S'g,   c = T^-T (D u + Y'P Y u - Y'P g),

with T the upper triangle of S'Y and D its diagonal. T^-1 grows by a column per pair, so a step costs a few
small products for all repeats together. In a convex problem any two points give a valid pair: a rejected
trial is learnt from like an accepted one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .passes import Passes
from .preconditioner import Preconditioner

Array = NDArray[np.float64]

_MEMORY = 24  # pairs kept; when full, the older half is forgotten
_OVERSHOOT = 0.9  # accept up to this slope, relative to the first one's size, beyond the minimum
_WINDOW = 4  # passes over which progress is judged
_PATIENCE = 30  # passes without progress, after which rounding is all that is left
_FRESH = 6  # passes that a solve needs about, with a fresh preconditioner


class Pairs:
    """The compact inverse Hessian of every repeat; dots are taken per repeat."""

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
        """-H g."""
        k = self._used
        if k == 0:
            return -Pg
        S, PY, T = self._S[:, :k], self._PY[:, :k], self._T[:, :k, :k]
        u = _times(T, _times(S, g))
        c = self._D[:, :k] * u + _times(self._YPY[:, :k, :k], u) - _times(PY, g)
        c = _times(T.transpose(0, 2, 1), c)
        return np.asarray(np.matmul(u[:, None, :], PY)[:, 0] - np.matmul(c[:, None, :], S)[:, 0] - Pg)

    def add(self, s: Array, y: Array, Py: Array, sy: Array) -> None:
        """Append a pair."""
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
        """The inverse of a trailing block of a triangle is the trailing block of its inverse."""
        for rows in (self._S, self._PY, self._D):
            rows[:, :-oldest] = rows[:, oldest:].copy()
        for square in (self._T, self._YPY):
            square[:, :-oldest, :-oldest] = square[:, oldest:, oldest:].copy()
        self._used -= oldest


def lbfgs(
    passes: Passes, start: Array, target: Array, preconditioner: Preconditioner, most: int
) -> tuple[Array, Array]:
    """(f, gradient) with ||gradient|| <= target in every repeat, or where `most` passes or rounding end."""
    f, g = start, passes.gradient(start)
    size = norms(g)
    if np.all(size <= target):
        return f, g
    preconditioner.ready(passes, f)
    pairs, Pg = Pairs(*start.shape), preconditioner.apply(passes, g)
    history = [float(np.max(size / target))]
    least, idle = history[0], 0
    for _ in range(most):
        active = size > target
        p = pairs.direction(g, Pg)
        p[~active] = 0.0
        f_new = f + p
        g_new = passes.gradient(f_new)
        size_new = norms(g_new)
        y = g_new - g
        bend, slope = dots(y, p), dots(g_new, p)
        if not np.all((bend > 0.0) & np.isfinite(size_new) | ~active):
            break
        Pg_new = preconditioner.apply(passes, g_new)
        pairs.add(p, y, Pg_new - Pg, np.where(active, bend, 1.0))
        better = active & ((slope <= _OVERSHOOT * (bend - slope)) | (size_new <= target))
        if np.all(better):
            f, g, Pg, size = f_new, g_new, Pg_new, size_new
        else:
            row = better[:, None]
            f, g, Pg = np.where(row, f_new, f), np.where(row, g_new, g), np.where(row, Pg_new, Pg)
            size = np.where(better, size_new, size)
        history.append(float(np.max(size / target)))
        idle = 0 if history[-1] < 0.7 * least else idle + 1
        least = min(least, history[-1])
        if history[-1] <= 1.0 or idle > _PATIENCE:
            break
        if _worth_rebuilding(history, preconditioner.cost(passes)):
            preconditioner.build(passes, f)
            Pg, history = preconditioner.apply(passes, g), history[-1:]
            pairs.clear()
    return f, g


def _worth_rebuilding(history: list[float], cost: float) -> bool:
    """Whether the passes left at the present rate outnumber those of a rebuild and a fresh start."""
    if len(history) <= max(_WINDOW, cost):
        return False
    rate = math.log(history[-1 - _WINDOW] / history[-1]) / _WINDOW
    return math.log(history[-1]) > rate * (cost + _FRESH)


def _times(A: Array, v: Array) -> Array:
    """A_r v_r for every repeat r."""
    return np.asarray(np.matmul(A, v[:, :, None])[:, :, 0])


def dots(a: Array, b: Array) -> Array:
    """a_r . b_r for every repeat r."""
    return np.asarray(np.einsum("rd,rd->r", a, b))


def norms(a: Array) -> Array:
    """||a_r|| for every repeat r."""
    return np.sqrt(dots(a, a))
