"""One masked sum of counts: every site counts its rows in public cells, adds noise and a mask, sends once.

A record is in one cell of each table, so that replacing it moves two cells of a table by one: by sqrt(2 k) in
all for k tables. The rows of a person weigh 1/m each, rounded down to the grid: a person moves it no further.
Counts are whole numbers of grid steps, so nothing is rounded, and noise on them is exact.
"""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..errors import ParameterError
from ..estimators.assignment import SiteAssignment, assign_sites
from ..masked import accounts, discrete
from ..masked.masks import PairKeys, expand
from ..masked.pairs import PairGraph
from ..masked.sums import add_mask, add_up, check_room, grid_for, open_sum
from ..privacy.accounting.gaussian import gaussian_mu
from ..privacy.accounting.sensitivity import counts_sensitivity
from ..privacy.certificate.certificate import Certificate
from ..privacy.facts import Charge, LossFacts, RunFacts, SiteFacts
from ..privacy.ledger.active import charge_run
from ..privacy.ledger.memory import MemoryLedger
from ..privacy.ledger.opening import open_ledger
from ..privacy.sums import COUNTS, SumFacts
from ..rng import SecureStreams, SeededStreams
from ..types import Array

Cells = NDArray[np.int64]
_ROOM = 1e-7  # of epsilon and delta: for the slack of discrete noise


@dataclass(frozen=True)
class CountWishes:
    """What a release may cost, whom it trusts, and where it is recorded; the keywords of all statistics."""

    epsilon: float
    delta: float = 1e-5
    site: Any = None
    person: Any = None
    sites: int = 5
    colluding: int | None = None
    large_delta: bool = False
    ledger: str | PathLike[str] | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.probability("delta", self.delta)
        if self.colluding is not None:
            checks.whole("colluding", self.colluding)
        if self.random_state is not None:
            checks.whole("random_state", self.random_state)
            if self.ledger is not None:
                raise ParameterError("`ledger` must be None with a `random_state`: nothing is protected.")


@dataclass(frozen=True, eq=False, repr=False)
class NoisyCounts:
    """What was released: the counts of every table, the spread of their noise, and what it cost.

    units : the public number of records, or of persons, each of which weighs 1 in every table.
    """

    tables: tuple[Array, ...]
    sigma: float
    units: int
    certificate: Certificate


def release_counts(cells: Cells, lengths: tuple[int, ...], wishes: CountWishes, what: str) -> NoisyCounts:
    """Count rows (rows, tables) in tables of so many cells, once for all tables, within (epsilon, delta)."""
    places = assign_sites(
        len(cells), wishes.site, wishes.sites, "complete", wishes.random_state, wishes.person
    )
    units = sum(places.samples)
    checks.usual_delta(wishes.delta, units, insisted=wishes.large_delta)
    run, sites = _facts(lengths, places, wishes)
    entry = run.sums[0]

    def plan(delta: float) -> Certificate:
        ledger = MemoryLedger(run, sites)
        ledger.charge_all([Charge(site.site, 1, scale=entry.std) for site in sites])
        return Certificate.from_ledger(ledger, delta)

    if plan(wishes.delta).epsilon > wishes.epsilon:
        raise ParameterError(
            f"`epsilon` must be at most 50, or so little noise proves nothing; got {wishes.epsilon:g}."
        )
    starts = np.concatenate([[0], np.cumsum(lengths)])
    with charge_run(what, plan), open_ledger(wishes.ledger, run, sites) as ledger:
        for site in sites:
            ledger.charge(Charge(site.site, 1, scale=entry.std))
        counts = _sum(cells + starts[:-1], places, entry, wishes)
        certificate = Certificate.from_ledger(ledger, wishes.delta)
    tables = tuple(np.split(counts, starts[1:-1]))
    return NoisyCounts(tables, entry.grid * entry.std * math.sqrt(len(sites)), units, certificate)


def _facts(
    lengths: tuple[int, ...], places: SiteAssignment, wishes: CountWishes
) -> tuple[RunFacts, list[SiteFacts]]:
    """All that the accountant must know, with noise such that the sum costs (epsilon, delta)."""
    sites, length = places.graph.n, sum(lengths)
    against = sites - 1 if wishes.colluding is None else wishes.colluding
    pairs = _pairs(sites, wishes.colluding)
    S = counts_sensitivity(len(lengths))
    mu = float(gaussian_mu(wishes.epsilon * (1 - _ROOM), wishes.delta * (1 - _ROOM)))
    size = mu * math.sqrt(pairs.honest(against))
    grid = grid_for(S / max(1.0, size), length)
    std = discrete.checked_std((S / grid + math.sqrt(length)) / size * (1 + 1e-10))
    check_room(sum(places.samples), grid=grid, sites=sites, std=std)
    person, simulated = places.person is not None, wishes.random_state is not None
    total = sum(places.samples)
    run = RunFacts(
        method="masked",
        noise="discrete",
        loss=LossFacts(COUNTS, 1.0, 0.0),
        sites=sites,
        rounds=1,
        dimension=len(lengths),
        C=1.0,
        regularization=0.0,
        simulated=simulated,
        where="" if simulated else "process",
        sums=(SumFacts(1, COUNTS, length, S, 0.0, grid, std),),
        records=None if person else total,
        largest=max(places.samples),
        colluding=wishes.colluding,
        connectivity=None if pairs.connectivity == sites - 1 else pairs.connectivity,
        unit="person" if person else "record",
        persons=total if person else None,
    )
    return run, accounts.site_facts(places.samples, places.graph.degrees.tolist(), places.names)


def _pairs(sites: int, colluding: int | None) -> PairGraph:
    return PairGraph.against(sites - 1 if colluding is None else colluding, sites)


def _sum(cells: Cells, places: SiteAssignment, entry: SumFacts, wishes: CountWishes) -> Array:
    """Every site's message, and what they add up to."""
    sites, shape, seed = places.graph.n, (1, entry.length), wishes.random_state
    pairs = _pairs(sites, wishes.colluding)
    streams = SecureStreams() if seed is None else SeededStreams(seed)
    root = os.urandom(32) if seed is None else hashlib.sha256(f"simulated {seed}".encode()).digest()
    weights = _weights(places, entry.grid)
    messages = []
    for i in range(sites):
        mine = places.site == i
        values = np.zeros(entry.length, dtype=np.int64)
        np.add.at(values, cells[mine], weights[mine, None])
        noise = discrete.draw(streams, entry.std, shape, site=i, t=1)
        keys = {j: expand(root, "pair", min(i, j), max(i, j)) for j in pairs.partners(i)}
        mask = PairKeys(i, keys, run=expand(root, "run")).mask(1, entry.part, shape)
        messages.append(add_mask(values[None], noise, mask))
    return np.asarray(open_sum(add_up(messages), entry.grid)[0])


def _weights(places: SiteAssignment, grid: float) -> NDArray[np.int64]:
    """What a row weighs, in grid steps: 1, or the m-th part of it, rounded down, for a person with m rows."""
    one = round(1 / grid)
    if places.person is None:
        return np.full(len(places.site), one, dtype=np.int64)
    rows = np.bincount(places.person)
    return np.asarray(one // rows[places.person], dtype=np.int64)
