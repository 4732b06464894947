"""Filters: refuse the charge that would take a site past its budget.

The cost so far is kept as sums of Renyi costs (one for each order), of pure costs, and of mu^2. A charge is
admitted while one of these sums converts to at most the budget. The choice must not depend on releases, so
schedules must be fixed before the run. A budget with an order uses that order alone and holds for any
charges.

Masked sums are limited by the sum of mu^2 against the colluders that the run's facts name. Its conversion
to epsilon is exact, and holds for adaptive charges too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...core.errors import BudgetExceeded
from ...core.formatting import format_cost, format_delta, format_given
from ...core.types import Array
from ..accounting import bounds
from ..collusion import masked_cost
from ..costs import Releases, exact_epsilon, exact_mu, gaussian_totals, pure_costs, renyi_totals, usable_delta
from ..facts import Charge, RunFacts, SiteBudget, SiteFacts

_SLACK = 1e-12  # relative: a running sum is rounded differently from the sum of a plan
_REMEMBERED = 4096


class Spent(NamedTuple):
    """A sum of charges: at each order, as pure epsilon, and as mu^2; for masked sums, also the rounds."""

    renyi: Array
    pure: float
    square: float
    rounds: tuple[int, ...] = ()


class _Prices:
    """The cost of one charge, remembered: sites and rounds often share their numbers."""

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
    """The cost of one site so far, and its limit."""

    def __init__(self, site: SiteFacts, budget: SiteBudget, price: _Prices) -> None:
        self._site, self._budget, self._price = site, budget, price
        self._orders = bounds.ORDERS if budget.order is None else np.array([budget.order])
        self._delta = usable_delta(price.run, budget.delta)
        self._square = exact_mu(price.run, budget.epsilon, budget.delta) ** 2
        self.spent = Spent(np.zeros(len(self._orders)), 0.0, 0.0)

    def after(self, charge: Charge) -> Spent:
        """The cost after a charge; `BudgetExceeded` if it exceeds the budget."""
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
        """The cost after a charge, whatever the budget is."""
        cost = self._price(self._site, charge, self._orders)
        past = self.spent
        return Spent(past.renyi + cost.renyi, past.pure + cost.pure, past.square + cost.square)


class MaskedFilter:
    """The cost of one site's masked sums against the stated number of colluders, and its limit.

    A round costs no less than nothing, and each is charged once: where the budget pays for all rounds that
    the run has, it pays for any of them, and no charge needs a look at the cost.
    """

    def __init__(self, run: RunFacts, site: SiteFacts, budget: SiteBudget) -> None:
        self._run, self._site, self._budget = run, site, budget
        self._honest = run.honest(run.colluding)
        self.spent = Spent(np.zeros(0), math.inf, math.inf)

    def after(self, charge: Charge) -> Spent:
        """The cost after a charge; `BudgetExceeded` if it exceeds the budget."""
        spent = self.plus(charge)
        if not self._pays_for_all:
            _admit(self._site, self._budget, charge, self._cost(sorted(spent.rounds)))
        return spent

    def plus(self, charge: Charge) -> Spent:
        """The cost after a charge, whatever the budget is."""
        return self.spent._replace(rounds=(*self.spent.rounds, charge.t))

    @cached_property
    def _pays_for_all(self) -> bool:
        return self._cost(range(1, self._run.rounds + 1)) <= self._budget.epsilon

    def _cost(self, rounds: Iterable[int]) -> float:
        return masked_cost(self._run, rounds, self._budget.delta, self._honest)


Filter = RenyiFilter | MaskedFilter


def filters(
    run: RunFacts, sites: Sequence[SiteFacts], budgets: Sequence[SiteBudget | None]
) -> list[Filter | None]:
    """One filter for each site that has a budget."""
    price = _Prices(run)
    made: list[Filter | None] = []
    for facts, limit in zip(sites, budgets, strict=True):
        if limit is None:
            made.append(None)
        elif run.masked:
            made.append(MaskedFilter(run, facts, limit))
        else:
            made.append(RenyiFilter(facts, limit, price))
    return made


def _admit(site: SiteFacts, budget: SiteBudget, charge: Charge, epsilon: float) -> None:
    if epsilon > budget.epsilon * (1 + _SLACK):
        raise BudgetExceeded(
            f"round {charge.t} would take {site.name} to epsilon = {format_cost(epsilon)}, past its "
            f"budget of {format_given(budget.epsilon)} at delta = {format_delta(budget.delta)}; nothing "
            "was released."
        )
