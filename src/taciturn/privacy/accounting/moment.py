"""An upper bound on ln E exp psi(R), R ~ Gamma(d, 1), which gives the Renyi cost of norm noise at order q.

psi is defined at `_psi`; r = q - 1, and u = alpha D (see `bounds`).
The values of R are divided into cells (intervals). exp psi is convex on either side of its peak at r u, so it
lies below its chord in each cell on one side of the peak. The mean of the chord follows from P(cell) and from
the mean of R in the cell, which incomplete gamma functions give. In the cell that contains the peak, the
value at the peak is used. In the tail beyond the last cell, the value at the start of the tail is used. So
the bound is above the true value by construction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ...core.types import Array
from .rounding import floats, up

_CELL = 0.12  # width of a cell, in standard deviations of ln R
_LOW, _HIGH = 1e-30, 1e-22  # the probability mass below and above the main cells
_SLACK = 1e-8  # this part of P(cell) is added to both weights of a chord: far above the error of gammainc
_NEAR = 1e-4  # like _SLACK, for the narrow cells around the peak
_TOWARDS = np.concatenate([[0.0], 2.0 ** np.arange(-7, 1)])  # where the cell above the peak is split
_LARGE = 600.0  # larger exponents count as infinite
_BATCH = 2_000_000  # the most numbers in memory at once
_KEPT = 64  # the number of cached tables of bounds, a few hundred kilobytes each


@dataclass(frozen=True)
class _Cells:
    """The cells into which the values of R are divided, and their weights."""

    d: int
    median: float
    nodes: Array  # ends of the main cells
    mass: Array  # P(cell)
    left: Array  # P(cell) (b - mean) / (b - a): weight of the chord's left end, for a cell from a to b
    right: Array  # P(cell) (mean - a) / (b - a): weight of the chord's right end
    low: Array  # ends of the cells below the main cells, from 0 up
    low_log: Array  # an upper bound on ln P(R <= right end of the cell)


@lru_cache(maxsize=32)
def _cells(d: int) -> _Cells:
    first = max(float(special.gammaincinv(d, _LOW)), 1e-10 * d)
    last = float(special.gammainccinv(d, _HIGH))
    width = (_CELL if d >= 10 else _CELL / 2) / np.sqrt(d)
    count = int(np.ceil(np.log(last / first) / width))
    nodes = np.geomspace(first, last, count + 1)
    mass = _differences(d, nodes)
    mean = d * _differences(d + 1, nodes) / mass
    share = np.clip((mean - nodes[:-1]) / np.diff(nodes), 0.0, 1.0)
    left, right = (1 - share + _SLACK) * mass, (share + _SLACK) * mass
    low = np.concatenate([[0.0], np.geomspace(min(0.02 * d, first), first, 80)])
    if low[1] == first:
        low = np.array([0.0, first])
    z = low[1:] / d
    low_log = np.minimum(d * (1 - z + np.log(z)), 0.0)
    low_log = np.minimum(low_log, np.log(np.maximum(special.gammainc(d, low[1:]), 1e-290)) + _SLACK)
    median = float(special.gammaincinv(d, 0.5))
    return _Cells(d, median, nodes, left + right, left, right, low, low_log)


def _differences(shape: int, nodes: Array) -> Array:
    """P(cell) under Gamma(shape, 1), computed from the nearer tail so that small masses are precise."""
    below, above = special.gammainc(shape, nodes), special.gammaincc(shape, nodes)
    return np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))


def log_moment(q: ArrayLike, u: ArrayLike, d: int, beyond: ArrayLike | None = None) -> Array:
    """An upper bound on ln E exp psi(R) for u = alpha D; infinite if the exponent is too large.

    With `beyond` = u' > u, the result is the left end of a chord in u: psi is replaced by 2 R for
    r u < R < r u'. Then (1-s) log_moment(u, beyond=u') + s log_moment(u') is an upper bound on
    log_moment((1-s) u + s u'), because psi is convex in u for u <= R/r and equal to 2 R for larger u, and
    ln E exp is convex (Hoelder).
    """
    q, u, v = np.broadcast_arrays(floats(q), floats(u), floats(u if beyond is None else beyond))
    flat = np.stack([q.ravel(), u.ravel(), v.ravel()], axis=1)
    return _cached_moments(d, flat.tobytes()).reshape(q.shape).copy()


@lru_cache(maxsize=_KEPT)
def _cached_moments(d: int, rows: bytes) -> Array:
    """One bound per row (q, u, v), cached: a certificate, its curves and its report need the same rows."""
    flat = np.frombuffer(rows).reshape(-1, 3)
    result = np.empty(len(flat))
    cells = _cells(d)
    step = max(1, _BATCH // len(cells.nodes))
    for start in range(0, len(flat), step):
        part = flat[start : start + step].T[..., None]
        result[start : start + step] = _moments(part[0], part[1], part[2], cells)
    return result


def _moments(q: Array, u: Array, v: Array, cells: _Cells) -> Array:
    """One bound per row of the columns q, u, v."""
    lo, hi = (q - 1) * u, (q - 1) * v
    a, b = cells.nodes[:-1], cells.nodes[1:]
    shape = _psi(cells.nodes, q, u)
    rise = np.expm1(np.minimum(shape, _LARGE))
    chord = cells.left * rise[:, :-1] + cells.right * rise[:, 1:]
    peak = cells.mass * np.expm1(np.minimum(2 * np.minimum(b, hi), _LARGE))
    clear = (b <= lo) | (a >= hi)
    sides, summit = np.where(clear, chord, 0.0).sum(axis=1), np.where(clear, 0.0, peak).sum(axis=1)
    closer = (summit > 1e-4 * sides) & (lo[:, 0] > cells.nodes[0]) & (hi[:, 0] < cells.median)
    if closer.any():
        summit[closer] = np.minimum(summit[closer], _summit(q[closer], u[closer], v[closer], cells))
    tail = _HIGH * (1 + 1e-6) * rise[:, -1]
    below = _below(q, u, v, cells)
    past = (shape.max(axis=1) >= _LARGE) | (hi[:, 0] >= cells.nodes[-1]) | (below >= _LARGE)
    total = np.log1p(sides + summit + tail + np.exp(np.minimum(below, _LARGE)))
    return np.where(past, np.inf, np.where(u[:, 0] > 0, up(total), 0.0))


def _summit(q: Array, u: Array, v: Array, cells: _Cells) -> Array:
    """E[exp psi - 1] over the cells around the peak. These cells are split at r v. Above r v, the cells are
    smaller the nearer they are to r v."""
    lo, hi = (q - 1) * u, (q - 1) * v
    a = cells.nodes[np.searchsorted(cells.nodes, lo, side="right") - 1]
    b = cells.nodes[np.searchsorted(cells.nodes, hi, side="left")]
    nodes = np.concatenate([a, hi + (b - hi) * _TOWARDS], axis=1)
    below = special.gammainc(cells.d, nodes)
    mass = np.diff(below) + 1e-14 * below[:, 1:]
    mean = cells.d * np.diff(special.gammainc(cells.d + 1, nodes)) / mass
    share = np.clip((mean - nodes[:, :-1]) / np.maximum(np.diff(nodes), 1e-300), 0.0, 1.0)
    rise = np.expm1(np.minimum(_psi(nodes, q, u), _LARGE))
    before, after = rise[:, :-1], rise[:, 1:].copy()
    after[:, 0] = np.expm1(np.minimum(2 * hi[:, 0], _LARGE))
    return np.asarray((mass * ((1 - share + _NEAR) * before + (share + _NEAR) * after)).sum(axis=1))


def _below(q: Array, u: Array, v: Array, cells: _Cells) -> Array:
    """An upper bound on ln E[exp psi; R below the main cells], with the largest exponent of each cell."""
    lo, hi = (q - 1) * u, (q - 1) * v
    a, b = cells.low[:-1], cells.low[1:]
    left = _psi(np.maximum(a, 1e-100), q, u)
    largest = np.where(a >= hi, left, 2 * np.minimum(b, np.maximum(hi, lo)))
    exponent = largest + cells.low_log
    most = exponent.max(axis=1, keepdims=True)
    return np.asarray(most[:, 0] + np.log(np.exp(exponent - most).sum(axis=1)))


def _psi(R: Array, q: Array, u: Array) -> Array:
    """max over the angle of r ||S + q Delta|| + ||S|| - q ||S + r Delta||, ||S|| = R, ||Delta|| = u.

    The angle is the angle between S and Delta; q and u are columns, with one row for each bound.
    psi is 2 R up to R = r u, then 2 r (q u - R) up to R = (r + 1/2) u, then R - sqrt(R^2 - q r u^2). It has
    one peak.
    """
    r = q - 1
    c = q * r * u**2
    far = np.minimum(c, R * R) / (R + np.sqrt(np.maximum(R * R - c, 0.0)))
    return np.where(r * u >= R, 2 * R, np.where((r + 0.5) * u >= R, 2 * r * (q * u - R), far))
