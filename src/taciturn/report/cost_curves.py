"""What every site had spent after every round, by each way to count, from a certificate's facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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
from ..privacy.facts import SiteBudget
from ..types import Array

CostCurves = Mapping[str, Array]
"""By "renyi", "pure" and "paper": (sites, rounds), nondecreasing, the last column the certified total."""

_ROWS = 10_000  # releases whose Renyi costs are held at a time


def cost_curves(certificate: Certificate) -> CostCurves:
    """Sums over the rounds so far; sites that are alike are computed once."""
    keys = [_key(certificate, row) for row in range(len(certificate.sites))]
    first = {key: row for row, key in reversed(list(enumerate(keys)))}
    place = {key: k for k, key in enumerate(first)}
    alike = [place[key] for key in keys]
    return {
        kind: _ending(curves[alike], total)
        for (kind, curves), total in zip(
            _curves(certificate, list(first.values())).items(), _totals(certificate), strict=True
        )
    }


def _key(certificate: Certificate, row: int) -> tuple[Any, ...]:
    columns = certificate.releases[row]
    return (
        certificate.sites[row].samples,
        certificate.budgets[row],
        *(column.tobytes() for column in columns),
    )


def _totals(certificate: Certificate) -> list[Array]:
    """What is certified of every site, in the order of `_curves`."""
    names = ("epsilon", "pure_epsilon", "paper_epsilon")
    return [np.array([getattr(cost, name) for cost in certificate.costs]) for name in names]


def _ending(curves: Array, total: Array) -> Array:
    """The curves, ending at what is certified and nowhere above it."""
    curves = np.minimum(curves, total[:, None])
    curves[:, -1] = total
    return curves


def _curves(certificate: Certificate, rows: Sequence[int]) -> dict[str, Array]:
    """Each way to count, (rows, rounds)."""
    run, rounds = certificate.run, max(1, certificate.rounds)
    if run.masked:
        return _masked(certificate, rows, rounds)
    table = _table(certificate, rows)
    pure = np.cumsum(pure_costs(run, table).reshape(-1, rounds), axis=1)
    paper = np.cumsum(paper_costs(run, table).reshape(-1, rounds), axis=1)
    renyi = np.empty_like(pure)
    for limit in {_filter(certificate, row) for row in rows}:
        mine = [k for k, row in enumerate(rows) if _filter(certificate, row) == limit]
        step = max(1, _ROWS // rounds)
        for part in (mine[k : k + step] for k in range(0, len(mine), step)):
            renyi[part] = _epsilon(certificate, [rows[k] for k in part], limit)
        if limit is None:
            renyi[mine] = np.minimum(renyi[mine], pure[mine])
    return {"renyi": renyi, "pure": pure, "paper": paper}


def _masked(certificate: Certificate, rows: Sequence[int], rounds: int) -> dict[str, Array]:
    """Masked sums, counted against the colluders that the facts name; no other count knows them."""
    run, none = certificate.run, np.full((len(rows), rounds), np.inf)
    counted = np.zeros((len(rows), rounds))
    for k, row in enumerate(rows):
        t = certificate.releases[row].t.tolist()
        curve = masked_curve(run, t, certificate.delta, run.honest(run.colluding))
        counted[k, : len(t)] = curve
        counted[k, len(t) :] = curve[-1] if t else 0.0
    return {"renyi": counted, "pure": none, "paper": none}


def _filter(certificate: Certificate, row: int) -> SiteBudget | None:
    """The budget of a site whose charges may have reacted to the run, at the one order fixed before it."""
    limit = certificate.budgets[row]
    return None if limit is None or limit.order is None else limit


def _epsilon(certificate: Certificate, rows: Sequence[int], limit: SiteBudget | None) -> Array:
    """(rows, rounds): the best accountant and order for each round, or the filter's own order."""
    orders = bounds.ORDERS if limit is None else np.array([limit.order])
    delta = certificate.delta if limit is None else limit.delta
    table = _table(certificate, rows)
    each = renyi_totals(certificate.run, table, orders)
    summed = np.cumsum(each.reshape(len(rows), -1, len(orders)), axis=1)
    epsilon = bounds.to_epsilon(orders, summed, usable_delta(certificate.run, delta))[0]
    if limit is not None:
        return epsilon
    squares = gaussian_totals(certificate.run, table).reshape(len(rows), -1) ** 2
    exact = exact_epsilon(certificate.run, np.sqrt(np.cumsum(squares, axis=1)), delta)
    return np.minimum(epsilon, exact)


def _table(certificate: Certificate, rows: Sequence[int]) -> Releases:
    """The releases of these sites up to the run's last round, each in a row of its own."""
    rounds = max(1, certificate.rounds)
    names = ("eta", "scale", "output_scale", "degree")
    full = {name: np.ones((len(rows), rounds)) for name in names}
    charged = np.zeros((len(rows), rounds), dtype=bool)
    for k, row in enumerate(rows):
        columns = certificate.releases[row]
        charged[k, columns.t - 1] = True
        for name in names:
            full[name][k, columns.t - 1] = getattr(columns, name)
    samples = np.repeat([float(certificate.sites[row].samples) for row in rows], rounds)
    return Releases(
        samples=samples.reshape(-1, 1),
        charged=charged.reshape(-1, 1),
        **{name: values.reshape(-1, 1) for name, values in full.items()},
    )
