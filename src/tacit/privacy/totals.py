"""Renyi divergence of whole runs: summed over rounds, for all orders, with no (sites, rounds, orders) array.

Each part of a round's cost, times r, is a convex function of one number. Few distinct values: each is a node.
Many: nodes 1.5% apart, and the chord between two nodes, which lies above a convex function, stands for what
is between (a relative 6e-5 too much). Then a site's total is a row of weights times a table (nodes, orders).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checks
from .moment import log_moment
from .renyi import curl, curl_renyi, excess, scaled_pure_renyi
from .rounding import FloatArray, floats, up

_STEP, _FEW, _MANY = 0.015, 400, 1500
_ROWS = 2_000_000  # weights held at once
_INFINITE = 1e250  # stands for infinity in tables, so that a weight of 0 takes it away
_PROBES = 48  # orders at which the rounds of a site are compared to be grouped


def renyi_gaussian_total(orders: ArrayLike, D: ArrayLike, sigma: ArrayLike, x: ArrayLike) -> FloatArray:
    """Sum over the rounds of `renyi_gaussian`: (..., rounds) -> (..., orders)."""
    q = floats(orders)
    D, sigma, x = np.broadcast_arrays(floats(D), floats(sigma), floats(x))
    shift = up(np.sum((D / sigma) ** 2, axis=-1) / 2)[..., None] * q
    rows = x.reshape(-1, x.shape[-1])
    axis = _Axis(curl(rows))
    bent = axis.total(np.arange(len(rows))[:, None], len(rows), axis.table(lambda v, _: curl_renyi(q, v)))
    return up(shift + bent.reshape(*x.shape[:-1], len(q)))


def renyi_norm_total(
    orders: ArrayLike,
    D: ArrayLike,
    alpha: ArrayLike,
    d: int,
    x: ArrayLike,
    pure: ArrayLike,
    K: int = 1,
) -> FloatArray:
    """Sum over the rounds of `renyi_norm`, or `joint_norm_renyi` for K > 1: (..., rounds) -> (..., orders).

    The smaller of the two bounds, Renyi and pure, is taken for whole groups of rounds of a site: never below
    the sum of the smaller ones. A group is the rounds that agree, at 48 orders, on which is smaller.
    """
    q, r = floats(orders), excess(orders)
    d, K = checks.whole("d", d, least=1), checks.whole("K", K, least=1)
    u = up(np.sqrt(K) * floats(D) * floats(alpha))
    u, y, pure = np.broadcast_arrays(u, curl(x), floats(pure))
    lead, shape = u.shape[:-1], (-1, u.shape[-1])
    moves, bends, pures = (_Axis(part.reshape(shape)) for part in (u, y, pure))
    move = moves.table(lambda v, w: log_moment(q, v, d * K, w) / r)
    bend = K * bends.table(lambda v, _: curl_renyi(q, v))
    cap = pures.table(lambda v, w: _pure_node(q, v, w) / r)
    pattern = np.zeros(moves.left.shape, dtype=np.int64)
    for j in np.unique(np.linspace(0, len(q) - 1, _PROBES).astype(np.intp)):
        capped = cap[pures.left, j] < move[moves.left, j] + bend[bends.left, j]
        pattern = 2 * pattern + capped
    site, group, count = _groups(pattern)
    open_cost = up(moves.total(group, count, move) + bends.total(group, count, bend))
    total = np.zeros((int(np.prod(lead)), len(q)))
    np.add.at(total, site, np.minimum(open_cost, pures.total(group, count, cap)))
    return up(total).reshape(*lead, len(q))


def _pure_node(q: FloatArray, v: FloatArray, w: FloatArray) -> FloatArray:
    """r `pure_renyi` at v, raised so that chords to w stay above: its second derivative is at least -1/4."""
    return np.asarray(scaled_pure_renyi(q, v) + (w - v) ** 2 / 32)


def _groups(pattern: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
    """The site of each group, the group of each round, and their number: same site, same pattern."""
    patterns, index = np.unique(pattern, return_inverse=True)
    label = np.arange(len(pattern))[:, None] * len(patterns) + index.reshape(pattern.shape)
    labels, group = np.unique(label, return_inverse=True)
    return np.asarray(labels // len(patterns), dtype=np.intp), group.reshape(pattern.shape), len(labels)


class _Axis:
    """Values spread over nodes: value = (1 - share) nodes[left] + share nodes[left + 1]."""

    def __init__(self, values: FloatArray) -> None:
        distinct, inverse = np.unique(values, return_inverse=True)
        if len(distinct) <= _FEW:
            self.nodes, self.left = distinct, inverse.reshape(values.shape)
            self.next, self.share = distinct, np.zeros(values.shape)
            return
        positive = distinct[distinct > 0]
        low, high = positive[0], positive[-1]
        count = int(np.clip(np.ceil(np.log(high / low) / _STEP), 1, _MANY)) + 1
        grid = np.geomspace(low * (1 - 1e-12), high * (1 + 1e-12), count)
        self.nodes = grid if distinct[0] > 0 else np.concatenate([[0.0], grid])
        self.next = np.append(self.nodes[1:], self.nodes[-1])
        left = np.searchsorted(self.nodes, values, side="right") - 1
        self.left = np.minimum(left, len(self.nodes) - 2)
        start = self.nodes[self.left]
        share = np.clip((values - start) / (self.next[self.left] - start), 0.0, 1.0)
        self.share = np.where(values > 0, share, 0.0)

    def table(self, cost: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
        """cost(node, next node) for every order: (nodes, orders)."""
        nodes, after = self.nodes[:, None], self.next[:, None]
        return np.minimum(cost(nodes, after), _INFINITE)

    def total(self, row: NDArray[np.intp], rows: int, table: FloatArray) -> FloatArray:
        """Sum of the costs of all values with the same row: (rows, orders)."""
        row = np.broadcast_to(row, self.left.shape)
        n = len(self.nodes)
        result = np.empty((rows, table.shape[1]))
        step = max(1, _ROWS // n)
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            here = (row >= start) & (row < stop) if rows > step else np.ones(row.shape, dtype=bool)
            cell, share = (row[here] - start) * n + self.left[here], self.share[here]
            size = (stop - start) * n
            weights = np.bincount(cell, 1 - share, size)
            if share.any():
                weights += np.bincount(np.minimum(cell + 1, size - 1), share, size)
            result[start:stop] = weights.reshape(-1, n) @ table
        return np.where(result >= _INFINITE / 1e30, np.inf, up(result))
