"""The cost of every site, for its charged rounds or for all rounds that were planned.

A charge records one release of one site in one round. The functions `check_...` raise an error if a
certificate contradicts its own facts, or contains charges that no ledger allows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core import checks
from ...core.errors import CertificateError
from ..accounting import bounds
from ..collusion import masked_cost, masked_mu, masked_table
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

Row = tuple[SiteFacts, SiteBudget | None, Columns | None]
"""A site; its budget, or None; and the rounds to count, or None if the facts do not state them."""

WHERE = {
    "process": "one process",
    "folders": "folders of one machine",
    "network": "a network",
}
_EXACT = 400  # `accounting.totals` sums up to this many rounds exactly, without interpolation by chords
_CLOSE = 1e-9  # relative tolerance: a running sum is rounded differently from one sum over the whole run
_UNKNOWN = SiteCost(math.inf, False, math.inf, math.inf, None)


def planned_columns(
    run: RunFacts, site: SiteFacts, limit: SiteBudget | None, charged: Columns
) -> Columns | None:
    """The rounds that epsilon must include: the site's planned rounds, as far as its budget pays for them.

    The decision to end a run early may depend on the messages, so the planned rounds after the end count too.
    The result is None if the facts do not state these rounds. In three cases the result is `charged` itself:
    if all rounds were charged; if no round was charged, because the site then sent nothing; and if the budget
    has a fixed Renyi order, because such a budget is certified as a whole.
    """
    if charged.t.size in (0, run.rounds) or (limit is not None and limit.order is not None):
        return charged
    stated = site.eta and (site.scale or run.noise == "none") and (site.output_scale or not run.output_noise)
    if not (stated or len(run.sums) == run.rounds):
        return None
    whole = planned_charges(run, site, run.rounds)
    return whole if limit is None else _affordable(run, site, limit, whole, int(charged.t.size))


def planned_charges(run: RunFacts, site: SiteFacts, rounds: int) -> Columns:
    """The planned charges of a site's first rounds: for the run's sums, then by the site's schedules."""
    t = np.arange(1, rounds + 1)
    sums = np.array([entry.std for entry in run.sums[:rounds]])
    after = t[len(sums) :] - len(sums)
    none = np.zeros(len(sums))
    eta, scale, output = (
        np.array(table)[np.minimum(after, len(table)) - 1] if table else np.zeros(len(after))
        for table in (site.eta, site.scale, site.output_scale)
    )
    return Columns(
        t,
        np.concatenate([none, eta]),
        np.concatenate([sums, scale]),
        np.concatenate([none, output]),
        np.full(rounds, site.degree),
    )


def _affordable(run: RunFacts, site: SiteFacts, limit: SiteBudget, whole: Columns, least: int) -> Columns:
    """The first rounds of `whole`, as many as the budget allows, and at least `least`.

    Their number does not depend on the data, because the budget is fixed before the run.
    """

    def first(rounds: int) -> Columns:
        return Columns._make(column[:rounds] for column in whole)

    def within(rounds: int) -> bool:
        cost = site_costs(run, [(site, limit, first(rounds))], limit.delta)[0]
        return cost.epsilon <= limit.epsilon * (1 + _CLOSE)

    low, high = least, len(whole.t)
    if within(high):
        return whole
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return first(low)


def check_budgets(run: RunFacts, rows: Sequence[Row]) -> None:
    """Raise if a site was charged more than its budget, which a ledger never allows."""
    fixed = [(row, limit) for row in rows if (limit := row[1]) is not None and limit.order is None]
    for delta in {limit.delta for _, limit in fixed}:
        chosen = [(row, limit) for row, limit in fixed if limit.delta == delta]
        costs = site_costs(run, [row for row, _ in chosen], delta)
        for ((site, *_), limit), cost in zip(chosen, costs, strict=True):
            if cost.epsilon > limit.epsilon * (1 + _CLOSE):
                raise CertificateError(
                    f"{site.name} was charged more than its budget, which a ledger never allows."
                )


@np.errstate(over="ignore", invalid="ignore")  # a bound that overflows is infinite
def site_costs(run: RunFacts, rows: Sequence[Row], delta: float) -> tuple[SiteCost, ...]:
    """The cost of every site; inf for a site whose rounds are None. Equal sites are computed only once."""
    if run.mechanism.summed:
        return tuple(_masked_site_cost(run, columns, delta) for _, _, columns in rows if columns is not None)
    keys = [_key(*row) for row in rows]
    first: dict[Any, tuple[SiteFacts, SiteBudget | None, Columns]] = {}
    for key, (site, limit, columns) in zip(keys, rows, strict=True):
        if columns is not None:
            first.setdefault(key, (site, limit, columns))
    known = {None: _UNKNOWN}
    if first:
        known |= dict(zip(first, _distinct_costs(run, list(first.values()), delta), strict=True))
    return tuple(known[key] for key in keys)


def _key(site: SiteFacts, limit: SiteBudget | None, columns: Columns | None) -> Any:
    """A key; sites with equal keys have equal costs."""
    if columns is None:
        return None
    return site.samples, site.dual_step, limit, *(column.tobytes() for column in columns)


def _distinct_costs(
    run: RunFacts, rows: Sequence[tuple[SiteFacts, SiteBudget | None, Columns]], delta: float
) -> list[SiteCost]:
    table = Releases.of(run, [site for site, _, _ in rows], [columns for _, _, columns in rows])
    paper, pure = (bounds.compose(cost(run, table)) for cost in (paper_costs, pure_costs))
    renyi, order = bounds.to_epsilon(
        bounds.ORDERS, renyi_totals(run, table, bounds.ORDERS), usable_delta(run, delta)
    )
    gaussian = exact_epsilon(run, gaussian_totals(run, table), delta)
    costs = []
    for k, (site, limit, columns) in enumerate(rows):
        holds = paper_holds(run, site, columns)
        if limit is not None and limit.order is not None:
            costs.append(_filter_cost(run, site, columns, limit, delta, holds))
        else:
            found = {"pure": pure[k], "gaussian": gaussian[k], "renyi": renyi[k]}
            costs.append(_smallest(paper[k], holds, found, order[k]))
    return costs


def _smallest(paper: float, holds: bool, found: Mapping[str, float], order: float) -> SiteCost:
    """The cost of a site by the accountant with the smallest epsilon; in a tie, the first accountant."""
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
    """The cost of one site's masked sums against `run.colluding` colluding sites."""
    rounds, honest = columns.t.tolist(), run.honest(run.colluding)
    epsilon = masked_cost(run, rounds, delta, honest)
    pure = math.inf if rounds else 0.0
    known = "gaussian" if math.isfinite(epsilon) else None
    return SiteCost(pure, False, pure, epsilon, None, known, masked_mu(run, rounds, honest))


def costs_against(run: RunFacts, releases: Sequence[Columns | None], delta: float) -> tuple[float, ...]:
    """The worst site's epsilon against c = 0 .. N-1 colluding sites."""
    distinct = {tuple(c.t.tolist()) for c in releases if c is not None}
    tables = [masked_table(run, rounds, delta) for rounds in distinct]
    return tuple(max(figures) for figures in zip(*tables, strict=True))


def _filter_cost(
    run: RunFacts, site: SiteFacts, columns: Columns, limit: SiteBudget, delta: float, holds: bool
) -> SiteCost:
    """The cost of charges that may depend on earlier releases: the whole budget.

    The cost is infinite if the charges exceed the budget, or if the delta of the budget is above `delta`.
    """
    orders = np.array([limit.order])
    table = Releases.of(run, [site], [columns])
    # parts of at most _EXACT rounds, so that each part is summed exactly, as in the ledger's filter
    parts = [table.rounds(slice(k, k + _EXACT)) for k in range(0, table.eta.shape[1], _EXACT)]
    spent = sum((renyi_totals(run, part, orders)[0] for part in parts), np.zeros(1))
    cost = max(
        float(bounds.to_epsilon(orders, bounds.compose(spent[:, None]), usable_delta(run, limit.delta))[0]),
        limit.epsilon,
    )
    epsilon = cost if cost <= limit.epsilon * (1 + _CLOSE) and limit.delta <= delta else math.inf
    sure = math.isfinite(epsilon)
    return SiteCost(
        math.inf, holds, math.inf, epsilon, limit.order if sure else None, "renyi" if sure else None
    )


# -- what a ledger can contain ----------------------------------------------------------------------


def check_releases(run: RunFacts, site: SiteFacts, limit: SiteBudget | None, columns: Columns) -> None:
    """Raise unless all rounds up to the last charged one were charged, with numbers that fit the facts."""
    rounds = columns.t.size
    if not np.array_equal(columns.t, np.arange(1, rounds + 1)) or rounds > run.rounds:
        gaps = np.setdiff1d(np.arange(1, run.rounds + 1), columns.t)
        raise CertificateError(
            f"{site.name} was charged for later rounds but not for round {gaps[0]}. What was released in "
            "that round was never charged, so nothing can be certified."
            if gaps.size
            else f"{site.name} was charged for {rounds} rounds, but only {run.rounds} were planned."
        )
    sums = columns.t <= len(run.sums)
    needed: dict[str, Any] = {"eta": ~sums, "degree": run.sites > 1, "scale": run.noise != "none"}
    needed["output_scale"] = ~sums & (run.output_noise is not None)
    for name, positive in needed.items():
        column = getattr(columns, name)
        if name == "scale" and list(column[sums]) != [entry.std for entry in run.sums[: sums.sum()]]:
            raise CertificateError(
                f"{site.name} has charges with a `scale` that differs from the run's sums."
            )
        inside = np.where(positive, (column >= checks.LEAST) & (column <= checks.MOST), column == 0)
        if not np.all(inside):
            raise CertificateError(
                f"{site.name} has charges with a `{name}` that does not fit the run's facts."
            )
    other, reacting = columns.degree != site.degree, limit is not None and limit.order is not None
    # only a budget at a fixed Renyi order allows a charge with a degree other than the site's
    if np.any(other & ((columns.degree >= run.sites) | (not reacting))):
        raise CertificateError(
            f"{site.name} has {site.degree} neighbours, but a round was charged for a different number."
        )
    if site.eta and not reacting:
        planned = planned_charges(run, site, rounds)
        for name in ("eta", "scale", "output_scale"):
            if not np.array_equal(getattr(columns, name), getattr(planned, name)):
                raise CertificateError(
                    f"{site.name} was charged for a round with a `{name}` that is not in its schedule."
                )


def check_where(run: RunFacts, sites: Sequence[SiteFacts]) -> None:
    """Raise if the certificate of a real run covers a wrong number of sites.

    It must cover all sites if the run was in one process, and exactly one site otherwise.
    """
    expected = {"process": run.sites, "folders": 1, "network": 1}.get(run.where, len(sites))
    if len(sites) != expected:
        raise CertificateError(
            f"a certificate of a run in {WHERE[run.where]} must cover {expected} of its {run.sites} sites; "
            f"this certificate covers {len(sites)}."
        )


def check_head(head: Head | None, releases: Sequence[Columns]) -> None:
    """Raise unless the head of the ledger counts one row of facts and one row for each charge."""
    rows = 1 + sum(columns.t.size for columns in releases)
    if head is not None and head.rows != rows:
        raise CertificateError(
            f"`ledger_head` states {head.rows} rows, but the ledger must have {rows}: one row of facts, and "
            "one row for each charge."
        )
