"""Renyi divergence of whole runs: summed over rounds, for all orders, with no (sites, rounds, orders) array.

Each part of a round's cost, times r, is a convex function of one number. Few distinct values: each is a node.
Many: nodes 1% apart, and the chord between two nodes, which lies above a convex function, stands for what is
between (a relative 3e-5 too much). Then a site's total is a row of weights times a table (nodes, orders).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checks
from .moment import log_moment
from .renyi import curl, curl_renyi, excess, scaled_pure_renyi
from .rounding import FloatArray, floats, up

_STEP, _FEW, _MANY = 0.01, 400, 1500
_ROWS = 2_000_000  # weights held at once
_INFINITE = 1e250  # stands for infinity in tables, so that a weight of 0 takes it away
_GROUPS = 24  # bins within which the rounds of a site are compared as one


def renyi_gaussian_total(orders: ArrayLike, D: ArrayLike, sigma: ArrayLike, x: ArrayLike) -> FloatArray:
    """Sum over the rounds of `renyi_gaussian`: (..., rounds) -> (..., orders)."""
    q = floats(orders)
    D, sigma, x = np.broadcast_arrays(floats(D), floats(sigma), floats(x))
    shift = up(np.sum((D / sigma) ** 2, axis=-1) / 2)[..., None] * q
    rows = x.reshape(-1, x.shape[-1])
    axis = _Axis(curl(rows))
    bent = axis.total(np.arange(len(rows))[:, None], len(rows), axis.convex(curl_renyi, q))
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

    The smaller of the two bounds, Renyi and pure, is taken for groups of rounds of a site that cross alike:
    never below the sum of the smaller ones.
    """
    q, r = floats(orders), excess(orders)
    d, K = checks.whole("d", d, least=1), checks.whole("K", K, least=1)
    u = up(np.sqrt(K) * floats(D) * floats(alpha))
    u, x, pure = np.broadcast_arrays(u, floats(x), floats(pure))
    lead, shape = u.shape[:-1], (-1, u.shape[-1])
    moves, bends, pures = _Axis(u.reshape(shape)), _Axis(curl(x.reshape(shape))), _Axis(pure.reshape(shape))
    site, group, count = _groups(u.reshape(shape), x.reshape(shape), pure.reshape(shape), d, K)
    shift = moves.total(group, count, moves.table(lambda v, w: log_moment(q, v, d, w) / r))
    bent = bends.total(group, count, bends.convex(curl_renyi, q))
    capped = pures.total(group, count, pures.table(lambda v, w: _pure_node(q, v, w) / r))
    least = np.minimum(up(shift + K * bent), capped)
    total = np.zeros((int(np.prod(lead)), len(q)))
    np.add.at(total, site, least)
    return up(total).reshape(*lead, len(q))


def _pure_node(q: FloatArray, v: FloatArray, w: FloatArray) -> FloatArray:
    """r `pure_renyi` at v, raised so that chords to w stay above: its second derivative is at least -1/4."""
    return np.asarray(scaled_pure_renyi(q, v) + (w - v) ** 2 / 32)


def _groups(
    u: FloatArray, x: FloatArray, pure: FloatArray, d: int, K: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
    """The site of each group, the group of each round, and their number.

    Any grouping is sound. This one is tight: rounds with about the same order from which `pure` is the
    smaller bound, r ~ pure / (u^2 / (2 K d) + K y) or 1/x, and alike in which is smaller at orders near 1.
    """
    slope = u**2 / (2 * K * d) + K * curl(x)
    order = np.minimum(pure / np.maximum(slope, 1e-100), 1 / np.maximum(x, 1e-100))
    low = np.asarray(pure**2 < 2 * slope, dtype=np.intp)
    sites = np.arange(len(u))[:, None]
    label = (sites * 2 + low) * _GROUPS + _bins(np.log(np.clip(order, 1e-3, 1e5)))
    labels, group = np.unique(label, return_inverse=True)
    return np.asarray(labels // (2 * _GROUPS), dtype=np.intp), group.reshape(u.shape), len(labels)


def _bins(values: FloatArray) -> NDArray[np.intp]:
    """Bins of width 0.05 or more, at most _GROUPS of them."""
    low, high = float(values.min()), float(values.max())
    width = max(0.05, (high - low) / _GROUPS * (1 + 1e-9))
    return np.asarray((values - low) / width, dtype=np.intp)


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

    def convex(self, cost: Callable[[FloatArray, FloatArray], FloatArray], q: FloatArray) -> FloatArray:
        """The table of a cost(q, node) that is convex between the nodes."""
        return self.table(lambda v, _: cost(q, v))

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
