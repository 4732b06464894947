"""Find the smallest noise for which the certificate of a run is within every site's budget.

The run uses penalty perturbation: each site adds noise to the objective that it minimises in a round, and
releases the solution. A certificate states the privacy cost of a run. The cost has two parts. The first part
decreases with more noise. The second part, the cost of the Jacobian, decreases with a larger penalty eta. It
exists because one record also changes the map from the noise to the released vector.

The size of the noise (its standard deviation, or 1/rate) in round t at site i is factor[i] * relative[i, t].
`relative` is fixed beforehand. `calibrate` finds the factors by bisection, with the same functions that
compute the certificate. The factors that it returns are slightly too large and never too small. So the cost
never exceeds the budget; it is about 99.9% of the budget.
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

_ROOM = 1e-6  # this share of the budget is kept free, because noise and eta are later rounded to six digits
_CLOSE = 1 + 2e-4  # `_narrow` stops when (upper factor) / (lower factor) is at most this
# The Renyi orders of the first bisection; `_near` chooses the orders of the second.
_COARSE = bounds.ORDERS[::8]
# The largest factor: `_gaussian_factors` gives up at _LARGEST, `_narrow` at _LARGEST * (largest first guess).
_LARGEST = 1e30
_PASSES = 12  # iterations of `_gaussian_factors`
_NEARLY = 1.01  # `_gaussian_factors` accepts a factor if mu of the run <= _NEARLY * mu of the budget


@dataclass(frozen=True)
class EpsilonBudget:
    """The budget: one epsilon for each site, and one delta; delta = 0 asks for pure differential privacy.

    >>> EpsilonBudget.of([1.0, 0.5], 1e-5, sites=2).epsilon
    (1.0, 0.5)
    """

    epsilon: tuple[float, ...]
    delta: float

    @classmethod
    def of(cls, epsilon: float | Sequence[float], delta: float, *, sites: int) -> EpsilonBudget:
        """The budget from one epsilon for all sites, or from one epsilon for each site."""
        each = np.asarray(epsilon, dtype=object).ravel().tolist()
        if len(each) not in (1, sites):
            raise ParameterError(f"`epsilon` must have one entry per site, {sites}; got {len(each)}.")
        values = tuple(checks.positive("epsilon", value) for value in each) * (sites // len(each))
        return cls(values, 0.0 if delta == 0 else checks.probability("delta", delta))


def epsilon_by_site(run: RunFacts, releases: Releases, delta: float, orders: Array = bounds.ORDERS) -> Array:
    """The epsilon of each site, computed as for the certificate; the pure epsilon if delta = 0."""
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
    """A planned run whose noise factors are not chosen yet.

    samples, degree : the number of records and of neighbours of each site.
    eta, relative : arrays (sites, rounds); the module docstring explains them.
    output_scale : the scale of the noise that is added to the solutions; None without such noise.
    """

    run: RunFacts
    samples: Array
    degree: Array
    eta: Array
    relative: Array
    output_scale: float | None = None

    def releases(self, factor: Array) -> Releases:
        """The releases of the run if the size of the noise at site i is factor[i] * relative[i]."""
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
        """The same draft with fewer sites: only those with the indices `at`."""
        return Draft(
            self.run, self.samples[at], self.degree[at], self.eta[at], self.relative[at], self.output_scale
        )


def calibrate(draft: Draft, budget: EpsilonBudget) -> Array | None:
    """The standard deviation (or rate) of the noise, (sites, rounds); None if no amount of noise is enough.

    No amount is enough if the penalty is so small that the cost of the Jacobian alone exceeds the budget.
    """
    epsilon = np.array(budget.epsilon)
    first, back = _distinct(draft, epsilon)
    part, goal = draft.rows(first), epsilon[first] * (1 - _ROOM)
    factor = _bisect(part, goal, budget.delta)
    if factor is None:
        return None
    return np.asarray(part.releases(factor).scale[back])


def _distinct(draft: Draft, epsilon: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(one site of each group, the group of each site). All sites of a group need the same factor."""
    table = np.column_stack([draft.samples, draft.degree, epsilon, draft.eta, draft.relative])
    _, first, back = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return first, back.reshape(-1)


def _bisect(draft: Draft, goal: Array, delta: float) -> Array | None:
    """For each site, the factor at which epsilon is just below the goal; None if no factor is enough."""
    factor: Array | None = _guess(draft, goal, delta)
    orders = _COARSE
    for step in (1.5, 1.01):  # the first bisection starts at the guess, the second at the result of the first
        if factor is None:
            break

        def within(x: Array, orders: Array = orders) -> NDArray[np.bool_]:
            return np.asarray(epsilon_by_site(draft.run, draft.releases(x), delta, orders) <= goal)

        factor = _narrow(within, factor, step)
        if factor is not None and delta > 0:
            orders = _near(draft, factor, delta)
    return factor


def _near(draft: Draft, factor: Array, delta: float) -> Array:
    """The Renyi orders near the best orders of the sites. Leaving out orders can only increase epsilon."""
    cost = renyi_totals(draft.run, draft.releases(factor), _COARSE)
    best = bounds.to_epsilon(_COARSE, cost, delta)[1]
    r, all_r = best[np.isfinite(best)] - 1, bounds.ORDERS - 1
    if r.size == 0:
        return _COARSE
    return bounds.ORDERS[(all_r >= np.min(r) / 1.25) & (all_r <= np.max(r) * 1.25)]


def _narrow(within: Callable[[Array], NDArray[np.bool_]], start: Array, step: float) -> Array | None:
    """For each site, a factor for which `within` is True, at most `_CLOSE` times the smallest such factor.

    The result is None if the search finds no such factor for some site. The search assumes that more noise
    never increases the cost.
    """
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
    """A first guess for the bisection: factors for Gaussian noise, without the cost of the Jacobian."""
    run = draft.run
    k = bounds.sample_weight(run.C, draft.eta, draft.degree[:, None], draft.samples[:, None])
    D = bounds.displacement(k, run.loss.slope_bound, run.data_norm)
    move = np.sqrt(run.outputs * np.sum((D / draft.relative) ** 2, axis=1))
    wide = math.sqrt(2 * math.log(1 / delta)) if delta > 0 else math.sqrt(draft.eta.shape[1])
    return np.asarray(move * wide / epsilon / (1.0 if run.noise == "gaussian" else math.sqrt(run.dimension)))


def quick_factors(
    run: RunFacts, noise: str, D: Array, x: Array, relative: Array, epsilon: ArrayLike, delta: float
) -> Array:
    """A fast approximation of the factors that `calibrate` uses, for a search that compares many plans.

    D : an upper bound on the change of the noise vector that keeps the released vector the same when one
        record is replaced, (..., rounds).
    x : how much one record can change the Jacobian, (..., rounds).

    The result has the shape (...). An entry is inf if no factor is enough. For Gaussian noise, the factor is
    found by iteration, because the effect of x depends on the factor. For norm noise, with density
    ~ exp(-rate ||e||), the result is the smaller of two factors. The first is the factor for pure
    differential privacy. The second, used only if delta > 0, gives the norm noise a standard deviation 2%
    above the one that Gaussian noise would need for the same budget.
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
    """`gaussian_mu` with a cache, because a search calls it for hundreds of plans with the same budget."""
    return gaussian_mu(epsilon, delta)


def _gaussian_factors(run: RunFacts, D: Array, x: Array, relative: Array, mu: Array) -> Array:
    """The factor with which all rounds together have the given `mu`; inf if no factor is enough."""
    shape = loss_shape(run.loss)
    move = D / relative
    factor = np.sqrt(run.outputs * np.sum(move**2, axis=-1)) / mu
    for _ in range(_PASSES):
        wide = widening(shape, 2 * x * factor[..., None] * relative / D)
        spread = np.sqrt(run.outputs * np.sum((move * wide) ** 2, axis=-1))
        factor = np.minimum(np.maximum(factor, spread / mu), _LARGEST)
    return np.where(spread <= factor * mu * _NEARLY, factor, np.inf)


def _renyi_factors(D: Array, x: Array, relative: Array, epsilon: Array, delta: float, K: int) -> Array:
    """The factor for Gaussian noise, computed with Renyi divergences: the smallest over the orders `_COARSE`.

    The computation includes the cost of the Jacobian.
    """
    q = _COARSE
    move = np.sum((D / relative) ** 2, axis=-1)[..., None]
    bent = np.sum(bounds.jacobian_renyi(q, x[..., None]), axis=-2)
    start = np.log1p(-1 / q) - (math.log(delta) + np.log(q)) / (q - 1)
    room = (epsilon[..., None] - start) / K - bent
    squares = np.where(room > 0, q * move / (2 * np.where(room > 0, room, 1.0)), np.inf)
    return np.asarray(np.sqrt(np.min(squares, axis=-1)))
