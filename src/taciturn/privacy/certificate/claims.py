"""Claims: the numbers that follow from the facts of a run and from its charges (one per site and round)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...core import checks
from ...core.types import Array
from ..accounting import bounds
from ..accounting.rounding import up
from ..collusion import colluders, masked_curve
from ..costs import (
    Releases,
    SiteCost,
    exact_epsilon,
    gaussian_totals,
    paper_costs,
    pure_costs,
    renyi_totals,
    usable_delta,
)
from ..facts import Columns, RunFacts, SiteBudget, SiteFacts
from ..ledger.chain import Head
from ..ledger.memory import Ledger, checked_sites
from .released import Released, check_fits
from .site_costs import (
    check_budgets,
    check_head,
    check_releases,
    check_where,
    costs_against,
    planned_columns,
    site_costs,
)

LATEST = 2
"""The format of new certificates. In format 1, figures counted only the charged rounds, and a certificate did
not identify what was released."""


@dataclass(frozen=True, eq=False, repr=False)
class Claims:
    """The (epsilon, delta) of the least protected site, and all facts that give it (see `Certificate`).

    against : for masked sums, epsilon for each number c = 0 .. N-1 of colluding sites; otherwise empty.
    """

    run: RunFacts
    sites: tuple[SiteFacts, ...]
    budgets: tuple[SiteBudget | None, ...]
    releases: tuple[Columns, ...]
    delta: float
    costs: tuple[SiteCost, ...]
    epsilon: float
    pure_epsilon: float
    paper_epsilon: float
    worst_site: int
    against: tuple[float, ...] = ()
    head: Head | None = None
    charged_epsilon: float = 0.0
    released: Released | None = None
    form: int = LATEST

    @classmethod
    def from_facts(
        cls,
        run: RunFacts,
        sites: tuple[SiteFacts, ...],
        budgets: tuple[SiteBudget | None, ...],
        releases: tuple[Columns, ...],
        delta: float,
        head: Head | None = None,
        released: Released | None = None,
        form: int = LATEST,
    ) -> Self:
        """The claims that follow from these facts."""
        delta = checks.probability("delta", delta)
        rows = list(zip(checked_sites(run, sites), budgets, releases, strict=True))
        for facts, limit, columns in rows:
            check_releases(run, facts, limit, columns)
        check_head(head, releases)
        check_where(run, sites)
        check_budgets(run, rows)
        counted = releases if form == 1 else tuple(planned_columns(run, *row) for row in rows)
        costs = site_costs(run, list(zip(sites, budgets, counted, strict=True)), delta)
        worst = max(range(len(costs)), key=lambda row: (costs[row].epsilon, costs[row].pure_epsilon, -row))
        charged = costs
        if any(new is not old for new, old in zip(counted, releases, strict=True)):
            charged = site_costs(run, rows, delta)
        claims = cls(
            run=run,
            sites=sites,
            budgets=budgets,
            releases=releases,
            delta=delta,
            costs=costs,
            epsilon=costs[worst].epsilon,
            pure_epsilon=max(cost.pure_epsilon for cost in costs),
            paper_epsilon=max(cost.paper_epsilon for cost in costs),
            worst_site=sites[worst].site,
            against=costs_against(run, counted, delta) if run.mechanism.summed else (),
            head=head,
            charged_epsilon=max(cost.epsilon for cost in charged),
            released=released,
            form=form,
        )
        check_fits(run, claims.rounds, released)
        return claims

    @property
    def facts(self) -> tuple[Any, ...]:
        """The arguments of `from_facts`: all facts that the figures follow from."""
        given = self.run, self.sites, self.budgets, self.releases, self.delta, self.head
        return *given, self.released, self.form

    def epsilon_against(self, colluding: int | None) -> float:
        """epsilon at delta if `colluding` of the sites that do not hold the record collude with the observer.

        None means all of these sites. Only the epsilon of masked sums depends on `colluding`.
        """
        number = colluders(self.run, colluding)
        return self.against[number] if self.against else self.epsilon

    @property
    def mu(self) -> float | None:
        """mu of masked sums if `run.colluding` sites collude; None for other runs."""
        found = [cost.mu for cost in self.costs if cost.mu is not None]
        return max(found) if found else None

    @property
    def accountant(self) -> str | None:
        """The accountant that gave epsilon at the worst site; None if there is no finite bound."""
        return self.costs[_worst(self)].accountant

    @property
    def units(self) -> int:
        """The number of records at the sites of the certificate, or of persons in the whole network."""
        return self.run.persons or sum(facts.samples for facts in self.sites)

    @property
    def large_delta(self) -> bool:
        """Whether delta is above 1 / `units`, or 0.5 or more. A guarantee with such a delta is weak."""
        return checks.is_large_delta(self.delta, self.units)

    @property
    def rounds(self) -> int:
        """The last round that any site was charged for."""
        return max((int(columns.t[-1]) for columns in self.releases if columns.t.size), default=0)


# -- curves -----------------------------------------------------------------------------------------


def paper_curve(ledger: Ledger) -> Array:
    """P(t) of [ZKL18], (rounds,): the largest sum of `paper_costs` over rounds 1..t that any site has."""
    table = Releases.of(ledger.run, ledger.sites, [ledger.columns(facts.site) for facts in ledger.sites])
    return np.asarray(np.cumsum(paper_costs(ledger.run, table), axis=1).max(axis=0))


def pure_curve(claims: Claims, row: int | None = None) -> Array:
    """The pure epsilon of the site at position `row`, or of the worst site, after each of its releases."""
    return np.asarray(np.cumsum(pure_costs(claims.run, site_releases(claims, row))))


def epsilon_curve(claims: Claims, row: int | None = None) -> Array:
    """Epsilon of the site at position `row`, or of the worst site, after each release, at `claims.delta`."""
    run, row = claims.run, _worst(claims) if row is None else row
    if run.mechanism.summed:
        rounds = claims.releases[row].t.tolist()
        return masked_curve(run, rounds, claims.delta, run.honest(run.colluding))
    table, limit = site_releases(claims, row), claims.budgets[row]
    if limit is not None and limit.order is not None:  # charges may depend on releases, so one fixed order
        orders, delta = np.array([limit.order]), limit.delta
    else:
        orders, delta = bounds.ORDERS, claims.delta
    renyi = bounds.to_epsilon(
        orders, np.cumsum(renyi_totals(run, table, orders), axis=0), usable_delta(run, delta)
    )[0]
    if len(orders) == 1:
        return renyi
    mu = np.sqrt(np.cumsum(gaussian_totals(run, table) ** 2))
    gaussian = exact_epsilon(run, up(mu), delta)
    return np.minimum(np.minimum(renyi, gaussian), pure_curve(claims, row))


def site_releases(claims: Claims, row: int | None = None) -> Releases:
    """The releases of the site at position `row`, or of the worst site; one row of the tables per round."""
    row = _worst(claims) if row is None else row
    return Releases.of(claims.run, [claims.sites[row]], [claims.releases[row]]).by_round()


def _worst(claims: Claims) -> int:
    return [facts.site for facts in claims.sites].index(claims.worst_site)
