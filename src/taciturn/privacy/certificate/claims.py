"""Claims: the numbers that follow from the facts and charges of a run, site by site and round by round."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ... import checks
from ...errors import CertificateError
from ...types import Array
from ..accounting import bounds
from ..accounting.rounding import up
from ..collusion import colluders, masked_cost, masked_curve, masked_mu, masked_table
from ..costs import (
    Releases,
    SiteCost,
    exact_epsilon,
    gaussian_totals,
    paper_costs,
    paper_holds,
    pure_costs,
    renyi_totals,
    usable_delta,
)
from ..facts import Columns, RunFacts, SiteBudget, SiteFacts
from ..ledger.chain import Head
from ..ledger.memory import Ledger, checked_sites
from .possible import check_head, check_releases, check_where

_EXACT = 400  # rounds whose sum takes no chords
_CLOSE = 1e-9  # relative: a running sum rounds otherwise than the sum of a run


@dataclass(frozen=True, eq=False, repr=False)
class Claims:
    """The worst site's (epsilon, delta), and all it rests on; a `Certificate` says and writes it."""

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

    @classmethod
    def from_facts(
        cls,
        run: RunFacts,
        sites: tuple[SiteFacts, ...],
        budgets: tuple[SiteBudget | None, ...],
        releases: tuple[Columns, ...],
        delta: float,
        head: Head | None = None,
    ) -> Self:
        """What follows from these facts."""
        delta = checks.probability("delta", delta)
        for facts, limit, columns in zip(checked_sites(run, sites), budgets, releases, strict=True):
            check_releases(run, facts, limit, columns)
        check_head(head, releases)
        check_where(run, sites)
        costs = _costs(run, sites, budgets, releases, delta)
        _check_budgets(run, sites, budgets, releases)
        worst = max(range(len(costs)), key=lambda row: (costs[row].epsilon, costs[row].pure_epsilon, -row))
        return cls(
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
            against=_against(run, releases, delta) if run.masked else (),
            head=head,
        )

    def epsilon_against(self, colluding: int | None) -> float:
        """epsilon at delta if so many of the other sites work together with the observer; None: all of them.

        Only masked sums rest on it: the figure of any other run holds whoever works together.
        """
        number = colluders(self.run, colluding)
        return self.against[number] if self.run.masked else self.epsilon

    @property
    def mu(self) -> float | None:
        """mu of masked sums against the colluders that the facts name."""
        return max((cost.mu or 0.0 for cost in self.costs), default=0.0) if self.run.masked else None

    @property
    def accountant(self) -> str | None:
        """Whose epsilon the worst site's is; None where there is no finite one."""
        sites = [facts.site for facts in self.sites]
        return self.costs[sites.index(self.worst_site)].accountant

    @property
    def units(self) -> int:
        """How many records, or persons, the figures are about."""
        return self.run.persons or sum(facts.samples for facts in self.sites)

    @property
    def large_delta(self) -> bool:
        """Whether delta is above one over their number: then it promises little."""
        return checks.is_large_delta(self.delta, self.units)

    @property
    def rounds(self) -> int:
        """The last round that any site was charged for."""
        return max((int(columns.t[-1]) for columns in self.releases if columns.t.size), default=0)


def _check_budgets(
    run: RunFacts,
    sites: Sequence[SiteFacts],
    budgets: Sequence[SiteBudget | None],
    releases: Sequence[Columns],
) -> None:
    """No site is past its budget: no ledger would have let it."""
    fixed = {row: limit for row, limit in enumerate(budgets) if limit is not None and limit.order is None}
    for delta in {limit.delta for limit in fixed.values()}:
        rows = [row for row, limit in fixed.items() if limit.delta == delta]
        chosen = (
            [sites[row] for row in rows],
            [budgets[row] for row in rows],
            [releases[row] for row in rows],
        )
        for row, cost in zip(rows, _costs(run, *chosen, delta), strict=True):
            if cost.epsilon > fixed[row].epsilon * (1 + _CLOSE):
                raise CertificateError(
                    f"{sites[row].name} was charged past its budget, which no ledger lets happen."
                )


@np.errstate(over="ignore", invalid="ignore")  # beyond the floats there is no finite bound
def _costs(
    run: RunFacts,
    sites: Sequence[SiteFacts],
    budgets: Sequence[SiteBudget | None],
    releases: Sequence[Columns],
    delta: float,
) -> tuple[SiteCost, ...]:
    """The cost of every site; sites that are alike are computed once."""
    if run.masked:
        return tuple(_masked_site_cost(run, columns, delta) for columns in releases)
    keys = [
        (facts.samples, facts.dual_step, limit, *(column.tobytes() for column in columns))
        for facts, limit, columns in zip(sites, budgets, releases, strict=True)
    ]
    first: dict[Any, int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    rows = list(first.values())
    table = Releases.of([sites[row] for row in rows], [releases[row] for row in rows])
    paper, pure = (bounds.compose(cost(run, table)) for cost in (paper_costs, pure_costs))
    renyi, order = bounds.to_epsilon(
        bounds.ORDERS, renyi_totals(run, table, bounds.ORDERS), usable_delta(run, delta)
    )
    gaussian = exact_epsilon(run, gaussian_totals(run, table), delta)
    known: dict[Any, SiteCost] = {}
    for k, (key, row) in enumerate(first.items()):
        limit, columns = budgets[row], releases[row]
        holds = paper_holds(run, sites[row], columns)
        if limit is not None and limit.order is not None:
            known[key] = _filter_cost(run, sites[row], columns, limit, delta, holds)
        else:
            known[key] = _smallest(
                paper[k], holds, {"pure": pure[k], "gaussian": gaussian[k], "renyi": renyi[k]}, order[k]
            )
    return tuple(known[key] for key in keys)


def _smallest(paper: float, holds: bool, found: Mapping[str, float], order: float) -> SiteCost:
    """The cost of a site by whichever accountant finds the least; the first of equals."""
    known = {name: math.inf if math.isnan(cost) else float(cost) for name, cost in found.items()}
    name = min(known, key=lambda name: known[name])
    return SiteCost(
        paper_epsilon=math.inf if math.isnan(paper) else float(paper),
        paper_condition=holds,
        pure_epsilon=known["pure"],
        epsilon=known[name],
        order=float(order) if name == "renyi" and math.isfinite(known[name]) else None,
        accountant=name if math.isfinite(known[name]) else None,
    )


def _masked_site_cost(run: RunFacts, columns: Columns, delta: float) -> SiteCost:
    """One site's masked sums, against the colluders that the facts name."""
    rounds, honest = columns.t.tolist(), run.honest(run.colluding)
    epsilon = masked_cost(run, rounds, delta, honest)
    pure = math.inf if rounds else 0.0
    known = "gaussian" if math.isfinite(epsilon) else None
    return SiteCost(pure, False, pure, epsilon, None, known, masked_mu(run, rounds, honest))


def _against(run: RunFacts, releases: Sequence[Columns], delta: float) -> tuple[float, ...]:
    """The worst site's epsilon against c = 0 .. N-1 colluding sites."""
    tables = [masked_table(run, rounds, delta) for rounds in {tuple(c.t.tolist()) for c in releases}]
    return tuple(max(figures) for figures in zip(*tables, strict=True))


def _filter_cost(
    run: RunFacts, site: SiteFacts, columns: Columns, limit: SiteBudget, delta: float, holds: bool
) -> SiteCost:
    """Charges that reacted to the run: the budget is what holds, and only if they stayed below it."""
    orders = np.array([limit.order])
    table = Releases.of([site], [columns])
    spent = sum((renyi_totals(run, part, orders)[0] for part in _short(table)), np.zeros(1))
    cost = max(
        float(bounds.to_epsilon(orders, bounds.compose(spent[:, None]), usable_delta(run, limit.delta))[0]),
        limit.epsilon,
    )
    epsilon = cost if cost <= limit.epsilon * (1 + _CLOSE) and limit.delta <= delta else math.inf
    sure = math.isfinite(epsilon)
    return SiteCost(
        math.inf, holds, math.inf, epsilon, limit.order if sure else None, "renyi" if sure else None
    )


def _short(table: Releases) -> Iterator[Releases]:
    """The rounds in parts so short that each is summed exactly, as the ledger's filter sums them."""
    for first in range(0, table.eta.shape[1], _EXACT):
        at = np.s_[:, first : first + _EXACT]
        yield Releases(
            table.samples,
            table.eta[at],
            table.scale[at],
            table.output_scale[at],
            table.degree[at],
            table.charged[at],
        )


# -- curves -----------------------------------------------------------------------------------------


def paper_curve(ledger: Ledger) -> Array:
    """P(t) = max over sites of the sum up to t of K C (1.4 c1 + alpha) / (eta V B), (rounds,) [ZKL18]."""
    table = Releases.of(ledger.sites, [ledger.columns(facts.site) for facts in ledger.sites])
    return np.asarray(np.cumsum(paper_costs(ledger.run, table), axis=1).max(axis=0))


def pure_curve(claims: Claims) -> Array:
    """The worst site's pure epsilon after each round, (rounds,)."""
    return np.asarray(np.cumsum(pure_costs(claims.run, _worst(claims))))


def epsilon_curve(claims: Claims) -> Array:
    """The worst site's epsilon at the claims' delta after each round, (rounds,)."""
    run = claims.run
    if run.masked:
        rounds = list(range(1, claims.rounds + 1))
        return masked_curve(run, rounds, claims.delta, run.honest(run.colluding))
    table = _worst(claims)
    each = renyi_totals(run, table, bounds.ORDERS)
    delta = usable_delta(run, claims.delta)
    renyi, _ = bounds.to_epsilon(bounds.ORDERS, np.cumsum(each, axis=0), delta)
    mu = np.sqrt(np.cumsum(gaussian_totals(run, table) ** 2))
    gaussian = exact_epsilon(run, up(mu), claims.delta)
    return np.minimum(np.minimum(renyi, gaussian), pure_curve(claims))


def _worst(claims: Claims) -> Releases:
    """The worst site's rounds, each in a row of its own."""
    row = [facts.site for facts in claims.sites].index(claims.worst_site)
    table = Releases.of([claims.sites[row]], [claims.releases[row]])
    return Releases(
        table.samples, table.eta.T, table.scale.T, table.output_scale.T, table.degree.T, table.charged.T
    )
