"""Budget -> noise: the smallest noise of a given shape whose certificate stays within every site's budget.

Over the rounds the noise has a shape, `relative` (its standard deviation, or 1/rate, up to a factor); each
site has a factor of its own. `calibrate` finds the factors by bisection with the functions that make the
certificate. It returns the safe end, so the budget is never exceeded, and 99.9% of it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import checks
from ..core.errors import ParameterError
from ..core.types import Array
from ..privacy.accounting import bounds
from ..privacy.accounting.gaussian import gaussian_mu
from ..privacy.accounting.widening import widening
from ..privacy.collusion import moments_mu
from ..privacy.costs import (
    Releases,
    exact_epsilon,
    float_delta,
    gaussian_totals,
    loss_shape,
    pure_costs,
    renyi_totals,
    usable_delta,
)
from ..privacy.facts import RunFacts
from ..privacy.noise import NOISES

_ROOM = 1e-6  # share of the budget that is reserved for rounding of a schedule
_CLOSE = 1 + 2e-4  # when a bracket of factors is narrow enough
_COARSE = bounds.ORDERS[::8]  # enough to come near; the last steps use all orders
_LARGEST = 1e30
_PASSES, _NEARLY = 12, 1.01  # iterations for the bend's share of the noise, and when they are close enough


@dataclass(frozen=True)
class EpsilonBudget:
    """The budget of each site: (epsilon, delta); delta = 0 asks for a pure guarantee.

    >>> EpsilonBudget.of([1.0, 0.5], 1e-5, sites=2).epsilon
    (1.0, 0.5)
    """

    epsilon: tuple[float, ...]
    delta: float

    @classmethod
    def of(cls, epsilon: float | Sequence[float], delta: float, *, sites: int) -> EpsilonBudget:
        """One epsilon for all sites, or one for each."""
        each = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        if each.size == 1:
            each = np.repeat(each, sites)
        if each.shape != (sites,):
            raise ParameterError(f"`epsilon` must have one entry per site, {sites}; got {each.size}.")
        values = tuple(checks.positive("epsilon", value) for value in each.tolist())
        return cls(values, 0.0 if delta == 0 else checks.probability("delta", delta))


def epsilon_by_site(run: RunFacts, releases: Releases, delta: float, orders: Array = bounds.ORDERS) -> Array:
    """Each site's epsilon at delta, as its certificate states it; pure where delta = 0."""
    pure = np.sum(pure_costs(run, releases), axis=1)
    if delta == 0:
        return np.asarray(pure)
    if delta <= 2.1 * float_delta(run):
        return np.full(len(pure), np.inf)
    exact = exact_epsilon(run, gaussian_totals(run, releases), delta)
    epsilon, _ = bounds.to_epsilon(orders, renyi_totals(run, releases, orders), usable_delta(run, delta))
    return np.asarray(np.minimum(np.minimum(pure, exact), epsilon))


@dataclass(frozen=True)
class Draft:
    """A run without the size of its noise: tables (sites, rounds); `relative` is the shape of the noise."""

    run: RunFacts
    samples: Array
    degree: Array
    eta: Array
    relative: Array
    output_scale: float | None = None

    def releases(self, factor: Array) -> Releases:
        """The charges if site i's noise is factor[i] times its shape."""
        size = factor[:, None] * self.relative
        return Releases(
            samples=self.samples[:, None],
            eta=self.eta,
            scale=NOISES[self.run.noise].scale_of(size),
            output_scale=np.full_like(self.eta, self.output_scale or 1.0),
            degree=np.broadcast_to(self.degree[:, None], self.eta.shape).astype(np.float64),
            charged=np.ones(self.eta.shape, dtype=bool),
            moments=np.tile([moments_mu(self.run, t + 1) for t in range(self.run.moments)], (len(factor), 1)),
        )

    def rows(self, at: NDArray[np.intp]) -> Draft:
        """The same for some of the sites."""
        return Draft(
            self.run, self.samples[at], self.degree[at], self.eta[at], self.relative[at], self.output_scale
        )


def calibrate(draft: Draft, budget: EpsilonBudget) -> Array | None:
    """The scale of every site and round, (sites, rounds): std, or rate; None if no noise is enough.

    Too small a penalty or budget has no answer: the Jacobian's cost does not fall with the noise.
    """
    epsilon = np.array(budget.epsilon)
    first, back = _distinct(draft, epsilon)
    part, goal = draft.rows(first), epsilon[first] * (1 - _ROOM)
    factor = _bisect(part, goal, budget.delta)
    if factor is None:
        return None
    return np.asarray(part.releases(factor).scale[back])


def _distinct(draft: Draft, epsilon: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Sites that are alike need one bisection: the first of each kind, and which kind each site is."""
    table = np.column_stack([draft.samples, draft.degree, epsilon, draft.eta, draft.relative])
    _, first, back = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return first, back.reshape(-1)


def _bisect(draft: Draft, goal: Array, delta: float) -> Array | None:
    """The factor of each site: within the goal, and near its edge."""
    factor: Array | None = _guess(draft, goal, delta)
    orders = _COARSE
    for step in (1.5, 1.01):
        if factor is None:
            break

        def within(x: Array, orders: Array = orders) -> NDArray[np.bool_]:
            return np.asarray(epsilon_by_site(draft.run, draft.releases(x), delta, orders) <= goal)

        factor = _narrow(within, factor, step)
        if factor is not None and delta > 0:
            orders = _near(draft, factor, delta)
    return factor


def _near(draft: Draft, factor: Array, delta: float) -> Array:
    """Only the Renyi orders near those that the sites need: fewer orders never give a smaller epsilon."""
    cost = renyi_totals(draft.run, draft.releases(factor), _COARSE)
    best = bounds.to_epsilon(_COARSE, cost, delta)[1]
    r, all_r = best[np.isfinite(best)] - 1, bounds.ORDERS - 1
    if r.size == 0:
        return _COARSE
    return bounds.ORDERS[(all_r >= np.min(r) / 1.25) & (all_r <= np.max(r) * 1.25)]


def _narrow(within: Callable[[Array], NDArray[np.bool_]], start: Array, step: float) -> Array | None:
    """The smallest sufficient factors, up to `_CLOSE`; None if no factor is. More noise never costs more."""
    high = start
    while not np.all(ok := within(high)):
        high, step = np.where(ok, high, high * step), min(step**1.5, 1e6)
        if np.max(high) > _LARGEST * np.max(start):
            return None
    low = high / step
    while np.any(ok := within(low)):
        high, low = np.where(ok, low, high), np.where(ok, low / step, low)
    while np.max(high / low) > _CLOSE:
        middle = np.sqrt(high * low)
        ok = within(middle)
        high, low = np.where(ok, middle, high), np.where(ok, low, middle)
    return high


def _guess(draft: Draft, epsilon: Array, delta: float) -> Array:
    """The first guess: the factor of the Gaussian mechanism, without the cost of the Jacobian."""
    run = draft.run
    k = bounds.sample_weight(run.C, draft.eta, draft.degree[:, None], draft.samples[:, None])
    D = bounds.displacement(k, run.loss.slope_bound, run.data_norm)
    move = np.sqrt(run.outputs * np.sum((D / draft.relative) ** 2, axis=1))
    wide = math.sqrt(2 * math.log(1 / delta)) if delta > 0 else math.sqrt(draft.eta.shape[1])
    return np.asarray(move * wide / epsilon / (1.0 if run.noise == "gaussian" else math.sqrt(run.dimension)))


def quick_factors(
    run: RunFacts, noise: str, D: Array, x: Array, relative: Array, epsilon: ArrayLike, delta: float
) -> Array:
    """An approximation of the factor that `calibrate` finds, (..., rounds) -> (...); inf if there is none.

    It is a closed form, for searches over many shapes: for Gaussian noise the bend takes a few steps, and
    for norm noise it is the smaller of the pure factor and the Gaussian one at the same variance.
    """
    epsilon = np.asarray(epsilon, dtype=np.float64)
    if noise == "gaussian":
        mu = _mu_of(tuple(epsilon.ravel().tolist()), delta).reshape(epsilon.shape)
        return _gaussian_factors(run, D, x, relative, mu)
    room = epsilon / run.outputs - np.sum(np.log1p(x), axis=-1)
    pure = np.where(room > 0, np.sum(D / relative, axis=-1) / np.where(room > 0, room, 1.0), np.inf)
    if delta == 0:
        return np.asarray(pure)
    renyi = _renyi_factors(D, x, relative, epsilon, delta, run.outputs)
    return np.minimum(pure, renyi * 1.02 / math.sqrt(run.dimension + 1))


@lru_cache(maxsize=16)
def _mu_of(epsilon: tuple[float, ...], delta: float) -> Array:
    """Cached, because a search needs it for hundreds of shapes under one budget."""
    return gaussian_mu(epsilon, delta)


def _gaussian_factors(run: RunFacts, D: Array, x: Array, relative: Array, mu: Array) -> Array:
    """The factor at which the squares of all rounds' mu add up to that of the budget."""
    shape = loss_shape(run.loss)
    move = D / relative
    factor = np.sqrt(run.outputs * np.sum(move**2, axis=-1)) / mu
    for _ in range(_PASSES):
        wide = widening(shape, 2 * x * factor[..., None] * relative / D)
        spread = np.sqrt(run.outputs * np.sum((move * wide) ** 2, axis=-1))
        factor = np.minimum(np.maximum(factor, spread / mu), _LARGEST)
    return np.where(spread <= factor * mu * _NEARLY, factor, np.inf)


def _renyi_factors(D: Array, x: Array, relative: Array, epsilon: Array, delta: float, K: int) -> Array:
    """The same by Renyi divergence at the best of some orders, the Jacobian's share taken off first."""
    q = _COARSE
    move = np.sum((D / relative) ** 2, axis=-1)[..., None]
    bent = np.sum(bounds.jacobian_renyi(q, x[..., None]), axis=-2)
    start = np.log1p(-1 / q) - (math.log(delta) + np.log(q)) / (q - 1)
    room = (epsilon[..., None] - start) / K - bent
    squares = np.where(room > 0, q * move / (2 * np.where(room > 0, room, 1.0)), np.inf)
    return np.asarray(np.sqrt(np.min(squares, axis=-1)))
