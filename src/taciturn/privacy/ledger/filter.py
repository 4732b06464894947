"""A Renyi filter: refuse the charge that would take a site past its ceiling.

What was spent is a sum of Renyi costs, one for each order, and of pure costs; a charge is admitted while one
of them converts to at most the ceiling. Which one may not depend on what was released, so this needs
schedules fixed before the run. A ceiling with an order watches that order alone and holds for any charges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...errors import BudgetExceeded
from ...types import Array
from ..accounting import bounds
from ..costs import Releases, pure_costs, renyi_totals
from ..facts import Ceiling, Charge, RunFacts, SiteFacts

_SLACK = 1e-12  # relative: a running sum rounds otherwise than the sum of a plan
_REMEMBERED = 4096


class Spent(NamedTuple):
    """What a site's charges add up to: at each order, and as pure epsilon."""

    renyi: Array
    pure: float


class _Prices:
    """The cost of one charge, remembered: sites and rounds often share their numbers."""

    def __init__(self, run: RunFacts) -> None:
        self._run = run
        self._known: dict[tuple[object, ...], Spent] = {}

    def __call__(self, site: SiteFacts, charge: Charge, orders: Array) -> Spent:
        key = (site.samples, charge.degree or site.degree, *charge[2:5], len(orders), orders[0])
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            releases = Releases.single(site, charge)
            pure = float(pure_costs(self._run, releases).sum())
            self._known[key] = Spent(renyi_totals(self._run, releases, orders)[0], pure)
        return self._known[key]


class RenyiFilter:
    """What one site has spent, and what it may not pass."""

    def __init__(self, site: SiteFacts, ceiling: Ceiling, price: _Prices) -> None:
        self._site, self._ceiling, self._price = site, ceiling, price
        self._orders = bounds.ORDERS if ceiling.order is None else np.array([ceiling.order])
        self.spent = Spent(np.zeros(len(self._orders)), 0.0)

    def after(self, charge: Charge) -> Spent:
        """What will have been spent; `BudgetExceeded` where that is past the ceiling."""
        spent = self._plus(charge)
        epsilon = float(bounds.to_epsilon(self._orders, spent.renyi, self._ceiling.delta)[0])
        if self._ceiling.order is None:
            epsilon = min(epsilon, spent.pure)
        if epsilon > self._ceiling.epsilon * (1 + _SLACK):
            raise BudgetExceeded(
                f"round {charge.t} would take {self._site.name} to epsilon = {epsilon:.4g}, past its ceiling "
                f"of {self._ceiling.epsilon:.4g} at delta = {self._ceiling.delta:g}; nothing was released."
            )
        return spent

    def resume(self, charges: Sequence[Charge]) -> None:
        """Start from what the ledger already holds."""
        for charge in charges:
            self.spent = self._plus(charge)

    def _plus(self, charge: Charge) -> Spent:
        cost = self._price(self._site, charge, self._orders)
        return Spent(self.spent.renyi + cost.renyi, self.spent.pure + cost.pure)


def filters(
    run: RunFacts, sites: Sequence[SiteFacts], ceilings: Sequence[Ceiling | None]
) -> list[RenyiFilter | None]:
    """One filter for each site that has a ceiling."""
    price = _Prices(run)
    pairs = zip(sites, ceilings, strict=True)
    return [None if limit is None else RenyiFilter(facts, limit, price) for facts, limit in pairs]
