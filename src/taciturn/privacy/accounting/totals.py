"""The Renyi divergence of whole runs, summed over rounds, at all orders.

Each part of a round's cost at order q, times r = q - 1, is a function of one number (in the code: `u`, `y` or
`pure`). If this number has few distinct values, each value is a node. If it has many, the nodes are 1.5%
apart, or more if the values span many orders of magnitude. Between two nodes the chord replaces the function;
a convex function lies below its chord, with 1.5% by at most 6e-5 (relative). The function of `pure` is not
quite convex, so `renyi_norm_total` raises its chord. The total of a site is a row of weights times a table of
shape (nodes, orders), so no array of shape (sites, rounds, orders) is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import checks
from ...core.types import Array
from .bounds import curl, curl_renyi, excess, scaled_pure_renyi
from .moment import log_moment
from .rounding import floats, up

_STEP, _FEW, _MANY = 0.015, 400, 1500
_WEIGHTS = 4_000_000  # the most weights in memory at once
_INFINITE = 1e250  # stands for infinity in tables, so that a weight of 0 makes it 0

IntArray = NDArray[np.intp]


def renyi_gaussian_total(orders: ArrayLike, D: ArrayLike, sigma: ArrayLike, x: ArrayLike) -> Array:
    """Sum over rounds of q D^2 / (2 sigma^2) + J(q) (`jacobian_renyi`): (..., rounds) -> (..., orders)."""
    q = floats(orders)
    D, sigma, y = np.broadcast_arrays(np.atleast_1d(floats(D)), floats(sigma), curl(x))
    shift = up(np.sum((D / sigma) ** 2, axis=-1) / 2)[..., None] * q
    axis = _Axis(_table(y))
    bent = axis.sums(axis.table(lambda v, _: curl_renyi(q, v)))
    return up(shift + bent.reshape(*y.shape[:-1], len(q)))


def renyi_norm_total(
    orders: ArrayLike,
    D: ArrayLike,
    alpha: ArrayLike,
    d: int,
    x: ArrayLike,
    pure: ArrayLike,
) -> Array:
    """Sum over the rounds of ln E exp psi(R) / r + J(q), R ~ Gamma(d, 1/alpha), capped by the pure bound.

    The arguments have shape (..., rounds), and the result has shape (..., orders). psi is defined in
    `moment.py`, and J(q) in `jacobian_renyi`; `pure` is the pure epsilon of each release. In every round the
    Renyi bound is used below the order where the two bounds cross, and the pure bound above that order.
    """
    q, r = floats(orders), excess(orders)
    d = checks.whole("d", d, least=1)
    u = up(np.atleast_1d(floats(D)) * floats(alpha))
    u, y, pure = np.broadcast_arrays(u, curl(x), floats(pure))
    moves, bends, pures = (_Axis(_table(part)) for part in (u, y, pure))
    move = moves.table(lambda v, w: log_moment(q, v, d, w) / r)
    bend = bends.table(lambda v, _: curl_renyi(q, v))
    # r `pure_renyi` has a second derivative of at least -1/4, so its chord plus (w - v)^2 / 32 lies above it
    cap = pures.table(lambda v, w: (scaled_pure_renyi(q, v) + (w - v) ** 2 / 32) / r)

    def smaller(j: IntArray) -> NDArray[np.bool_]:
        """Whether the Renyi bound is below the pure bound at order number j of each round."""
        return np.asarray(move[moves.right, j] + bend[bends.right, j] < cap[pures.left, j])

    turn = _crossings(smaller, moves.left.shape, len(q))
    total = moves.sums(move, stop=turn) + bends.sums(bend, stop=turn) + pures.sums(cap, start=turn)
    return up(total).reshape(*u.shape[:-1], len(q))


def _table(values: Array) -> Array:
    """An array of shape (..., rounds), reshaped to (sites, rounds)."""
    return values.reshape(int(np.prod(values.shape[:-1])), values.shape[-1])


def _crossings(
    smaller: Callable[[IntArray], NDArray[np.bool_]], shape: tuple[int, ...], count: int
) -> IntArray:
    """For every round the first order at which `smaller` is False, by bisection. Any order would be valid."""
    low, high = np.zeros(shape, dtype=np.intp), np.full(shape, count, dtype=np.intp)
    for _ in range(count.bit_length()):
        middle = (low + high) // 2
        yes = smaller(np.minimum(middle, count - 1)) & (low < high)
        low, high = np.where(yes, middle + 1, low), np.where(yes, high, middle)
    return low


class _Axis:
    """Values (sites, rounds) as means of two nodes: value = (1 - share) nodes[left] + share nodes[right]."""

    def __init__(self, values: Array) -> None:
        distinct, inverse = np.unique(values, return_inverse=True)
        if len(distinct) <= _FEW:
            self.nodes, self.next = distinct, distinct
            self.left = self.right = np.asarray(inverse.reshape(values.shape), dtype=np.intp)
            self.share = np.zeros(values.shape)
            return
        positive = distinct[distinct > 0]
        low, high = positive[0] * (1 - 1e-12), positive[-1] * (1 + 1e-12)
        count = int(np.clip(np.ceil(np.log(high / low) / _STEP), 1, _MANY)) + 1
        grid = np.geomspace(low, high, count)
        self.nodes = grid if distinct[0] > 0 else np.concatenate([[0.0], grid])
        self.next = np.append(self.nodes[1:], 2 * self.nodes[-1] - self.nodes[-2])
        left = np.searchsorted(self.nodes, values, side="right") - 1
        self.left = np.minimum(left, len(self.nodes) - 2)
        start = self.nodes[self.left]
        share = np.clip((values - start) / (self.next[self.left] - start), 0.0, 1.0)
        self.share = np.where(values > 0, share, 0.0)
        self.right = self.left + (self.share > 0)

    def table(self, cost: Callable[[Array, Array], Array]) -> Array:
        """cost(node, next node) for every order: (nodes, orders)."""
        return np.minimum(cost(self.nodes[:, None], self.next[:, None]), _INFINITE)

    def sums(self, table: Array, *, start: IntArray | None = None, stop: IntArray | None = None) -> Array:
        """The sum over a site's rounds. A round counts at orders from its `start` on, or up to its `stop`."""
        sites, orders = len(self.left), table.shape[1]
        result = np.zeros((sites, orders))
        if self.left.size == 0:
            return result
        step = max(1, _WEIGHTS // len(self.nodes))
        for first in range(0, sites, step):
            part = slice(first, first + step)
            if start is not None:  # the same sum with the orders reversed
                result[part] = self._sums(part, table[:, ::-1], orders - start[part])[:, ::-1]
            else:
                ends = np.full(self.left[part].shape, orders, dtype=np.intp) if stop is None else stop[part]
                result[part] = self._sums(part, table, ends)
        return np.where(result >= _INFINITE / 1e30, np.inf, up(result))

    def _sums(self, part: slice, table: Array, stop: IntArray) -> Array:
        """The sums, from the last order to the first, so that weights are added but never subtracted."""
        left, right, share = self.left[part], self.right[part], self.share[part].ravel()
        n, sites = len(self.nodes), len(left)
        row = np.arange(sites)[:, None] * n
        left, right = (row + left).ravel(), (row + right).ravel()
        result, weights = np.zeros((sites, table.shape[1])), np.zeros(sites * n)
        by_end = np.argsort(-stop, axis=None, kind="stable")
        ends, starts = np.unique(-stop.ravel()[by_end], return_index=True)
        pieces = np.split(by_end, starts[1:])
        lower = np.append(-ends[1:], 0)
        for end, begin, piece in zip(-ends, lower, pieces, strict=True):
            np.add.at(weights, left[piece], 1 - share[piece])
            np.add.at(weights, right[piece], share[piece])
            result[:, begin:end] = weights.reshape(sites, n) @ table[:, begin:end]
        return result
