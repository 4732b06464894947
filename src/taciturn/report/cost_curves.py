"""What every site had spent after every round, by each way to count, from a certificate's facts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..core.types import Array
from ..privacy.accounting import bounds
from ..privacy.certificate.certificate import Certificate
from ..privacy.collusion import masked_curve
from ..privacy.costs import (
    Releases,
    exact_epsilon,
    gaussian_totals,
    paper_costs,
    pure_costs,
    renyi_totals,
    usable_delta,
)

CostCurves = Mapping[str, Array]
"""By "renyi", "pure" and "paper": (sites, rounds), nondecreasing, the last column the certified total of a
run that came to its end."""

_TOTALS = {"renyi": "epsilon", "pure": "pure_epsilon", "paper": "paper_epsilon"}


def cost_curves(certificate: Certificate) -> CostCurves:
    """Sums over the rounds so far; sites that are alike are computed once."""
    rounds = np.arange(1, max(1, certificate.rounds) + 1)
    known: dict[tuple[object, ...], dict[str, Array]] = {}
    found: dict[str, list[Array]] = {kind: [] for kind in _TOTALS}
    for row, cost in enumerate(certificate.costs):
        releases = certificate.releases[row]
        key = certificate.sites[row].samples, certificate.budgets[row], *(c.tobytes() for c in releases)
        curves = known.get(key) or known.setdefault(key, _site(certificate, row))
        limit = certificate.budgets[row]  # without its order, rounds that were not charged count as well
        whole = releases.t.size == certificate.run.rounds or (limit is not None and limit.order is not None)
        for kind, total in _TOTALS.items():
            level = curves[kind][np.minimum(rounds, len(curves[kind])) - 1]  # after its last release it stays
            spent = np.minimum(level, getattr(cost, total))
            if whole:
                spent[-1] = getattr(cost, total)
            found[kind].append(spent)
    return {kind: np.array(curves) for kind, curves in found.items()}


def _site(certificate: Certificate, row: int) -> dict[str, Array]:
    """What one site had spent after each round up to its last release, by each way to count."""
    run, columns, limit = certificate.run, certificate.releases[row], certificate.budgets[row]
    if run.masked:  # counted against the colluders that the facts name; no other count knows them
        none, t = np.full(1, np.inf), columns.t.tolist()
        curve = masked_curve(run, t, certificate.delta, run.honest(run.colluding)) if t else [0.0]
        return {"renyi": np.asarray(curve), "pure": none, "paper": none}
    table = Releases.of(run, [certificate.sites[row]], [columns]).by_round()
    pure, paper = np.cumsum(pure_costs(run, table)), np.cumsum(paper_costs(run, table))
    if limit is not None and limit.order is not None:  # charges may have reacted: the order was fixed before
        orders, delta = np.array([limit.order]), limit.delta
    else:
        orders, delta = bounds.ORDERS, certificate.delta
    summed = np.cumsum(renyi_totals(run, table, orders), axis=0)
    renyi = bounds.to_epsilon(orders, summed, usable_delta(run, delta))[0]
    if len(orders) > 1:
        exact = exact_epsilon(run, np.sqrt(np.cumsum(gaussian_totals(run, table) ** 2)), delta)
        renyi = np.minimum(np.minimum(renyi, exact), pure)
    return {"renyi": renyi, "pure": pure, "paper": paper}
