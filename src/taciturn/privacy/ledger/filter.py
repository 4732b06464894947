"""Privacy filters: they refuse a charge that would exceed the budget of a site.

A charge records the privacy cost of one release, before the release. A filter keeps sums of the Renyi costs
(one sum for each order), of the pure costs, and of mu^2. The filter admits a charge if at least one of these
sums converts to an epsilon within the budget. This is valid only if the charges do not depend on releases, so
schedules must be fixed before the run. If the budget states a Renyi order, the filter uses the Renyi cost at
this order alone. This is valid even if charges depend on earlier releases.

For masked sums a filter uses the sum of mu^2, computed for `run.colluding` colluding sites. The conversion of
mu^2 to epsilon is exact, and it is also valid if charges depend on earlier releases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import BudgetExceeded
from ...core.formatting import format_cost, format_delta, format_given
from ...core.types import Array
from ..accounting import bounds
from ..collusion import masked_cost
from ..costs import Releases, exact_epsilon, exact_mu, gaussian_totals, pure_costs, renyi_totals, usable_delta
from ..facts import Charge, RunFacts, SiteBudget, SiteFacts

_SLACK = 1e-12  # relative tolerance: a running sum is rounded differently from one sum over the whole plan
_REMEMBERED = 4096


class Spent(NamedTuple):
    """The sum of some charges: their Renyi cost at each order, their pure epsilon and their mu^2."""

    renyi: Array
    pure: float
    square: float


class _Prices:
    """The cost of one charge. Costs are cached, because many sites and rounds have the same facts."""

    def __init__(self, run: RunFacts) -> None:
        self.run = run
        self._known: dict[tuple[object, ...], Spent] = {}

    def __call__(self, site: SiteFacts, charge: Charge, orders: Array) -> Spent:
        moment = charge.t if charge.t <= self.run.moments else 0
        key = (site.samples, charge.degree or site.degree, moment, *charge[2:5], len(orders), orders[0])
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            releases = Releases.single(self.run, site, charge)
            pure = float(pure_costs(self.run, releases).sum())
            square = float(gaussian_totals(self.run, releases)[0]) ** 2
            self._known[key] = Spent(renyi_totals(self.run, releases, orders)[0], pure, square)
        return self._known[key]


class RenyiFilter:
    """The cost of one site's charges so far, and the site's budget."""

    def __init__(self, site: SiteFacts, budget: SiteBudget, price: _Prices) -> None:
        self._site, self._budget, self._price = site, budget, price
        self._orders = bounds.ORDERS if budget.order is None else np.array([budget.order])
        self._delta = usable_delta(price.run, budget.delta)
        self._square = exact_mu(price.run, budget.epsilon, budget.delta) ** 2
        self.spent: Any = Spent(np.zeros(len(self._orders)), 0.0, 0.0)

    def after(self, charge: Charge) -> Spent:
        """The cost after a charge. Raises `BudgetExceeded` if this cost exceeds the budget."""
        spent = self.plus(charge)
        fixed = self._budget.order is None
        if fixed and spent.square <= self._square * (1 + _SLACK):
            return spent
        epsilon = float(bounds.to_epsilon(self._orders, spent.renyi, self._delta)[0])
        if fixed:
            mu = np.asarray(math.sqrt(spent.square))
            exact = float(exact_epsilon(self._price.run, mu, self._budget.delta))
            epsilon = min(epsilon, spent.pure, exact)
        _admit(self._site, self._budget, charge, epsilon)
        return spent

    def plus(self, charge: Charge) -> Spent:
        """The cost after a charge, not compared with the budget."""
        cost = self._price(self._site, charge, self._orders)
        past = self.spent
        return Spent(past.renyi + cost.renyi, past.pure + cost.pure, past.square + cost.square)


class MaskedFilter:
    """The cost of one site's masked sums if `run.colluding` sites collude, and the site's budget.

    Every round is charged at most once. So if the budget is enough for all rounds of the run together, it is
    enough for any charges, and the filter compares no charge with the budget. `spent` lists charged rounds.
    """

    spent: Any = ()

    def __init__(self, run: RunFacts, site: SiteFacts, budget: SiteBudget) -> None:
        self._run, self._site, self._budget = run, site, budget
        self._honest = run.honest(run.colluding)

    def after(self, charge: Charge) -> tuple[int, ...]:
        """The charged rounds after a charge. Raises `BudgetExceeded` if their cost exceeds the budget."""
        spent = self.plus(charge)
        if not self._pays_for_all:
            _admit(self._site, self._budget, charge, self._cost(sorted(spent)))
        return spent

    def plus(self, charge: Charge) -> tuple[int, ...]:
        """The charged rounds after a charge. Their cost is not compared with the budget."""
        return *self.spent, charge.t

    @cached_property
    def _pays_for_all(self) -> bool:
        return self._cost(range(1, self._run.rounds + 1)) <= self._budget.epsilon

    def _cost(self, rounds: Iterable[int]) -> float:
        return masked_cost(self._run, rounds, self._budget.delta, self._honest)


Filter = RenyiFilter | MaskedFilter


def filters(
    run: RunFacts, sites: Sequence[SiteFacts], budgets: Sequence[SiteBudget | None]
) -> list[Filter | None]:
    """For each site a filter, or None if the site has no budget."""
    price = _Prices(run)

    def made(site: SiteFacts, budget: SiteBudget | None) -> Filter | None:
        if budget is None:
            return None
        return MaskedFilter(run, site, budget) if run.mechanism.summed else RenyiFilter(site, budget, price)

    return [made(*pair) for pair in zip(sites, budgets, strict=True)]


def _admit(site: SiteFacts, budget: SiteBudget, charge: Charge, epsilon: float) -> None:
    if epsilon > budget.epsilon * (1 + _SLACK):
        raise BudgetExceeded(
            f"round {charge.t} would raise the epsilon of {site.name} to {format_cost(epsilon)}, above its "
            f"budget of {format_given(budget.epsilon)} at delta = {format_delta(budget.delta)}. This round "
            "was not released."
        )
