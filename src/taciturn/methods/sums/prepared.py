"""A run of masked sums with all its numbers fixed: random masks hide what each site adds to a sum."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.types import Array
from ...privacy.facts import Charge, RoundCharges, RunFacts
from ...rng import streams_of
from ..base import Audience, Links, Network, SitesMethod, site_numbers
from .attempt import SumsSite
from .masks import Message, PairKeys, expand
from .node import SumsNode
from .program import SumTables
from .sums import add_mask, draw, to_integers


@dataclass(frozen=True, eq=False)
class PreparedSums(SitesMethod):
    """One run of a program of sums (`program.py`). Every site adds to every sum and receives every total."""

    network: Network
    tables: SumTables
    padded = True

    @property
    def rounds(self) -> int:
        return self.tables.rounds

    @property
    def model_size(self) -> int:
        return int(self.tables.program.size)

    def hears(self, t: int) -> Audience:
        return "everybody"

    def first(self, sites: Sequence[int], repeats: int, seed: int | None) -> Array | None:
        return None

    def nodes(
        self, objectives: Sequence[Any], cuts: Sequence[range], *, seed: int | None, repeats: int
    ) -> list[SumsNode]:
        tables, numbers = self.tables, site_numbers(self.network)
        streams, shared = streams_of(seed), _SharedAdvance(tables)
        root = os.urandom(32) if seed is None else hashlib.sha256(f"simulated {seed}".encode()).digest()
        return [
            SumsNode(
                sites=numbers[own.start : own.stop],
                halves=[tables.program.private_half(objectives[row], tables.units) for row in own],
                tables=tables,
                keys=[process_keys(tables, root, site) for site in numbers[own.start : own.stop].tolist()],
                streams=streams,
                repeats=repeats,
                after_total=shared,
            )
            for own in cuts
        ]

    def at_site(self, rows: Any, samples: Sequence[int], links: Links, seed: int | None) -> SumsSite:
        (number,), tables, persons = self.network.sites, self.tables, self.network.persons
        half = tables.program.private_half(rows, tables.units)
        places = 1 if persons is None else persons.most_sites
        return SumsSite(number, tables, half, streams_of(seed), tuple(samples), places)

    def released(self, run: RunFacts, rounds: Sequence[int]) -> tuple[RunFacts, list[Charge]]:
        """The facts and charges of a site that sent the messages of these rounds and no others.

        A round that is listed twice is charged twice. All other sites then count as colluding, so that only
        the site's own noise counts.
        """
        colluding = None if len(set(rounds)) < len(rounds) else run.colluding
        sums = tuple(replace(run.sums[t - 1], t=k) for k, t in enumerate(rounds, start=1))
        return replace(run, rounds=len(sums), sums=sums, colluding=colluding), self._renumbered(rounds)

    def warm_up(self, rows: Any, seed: int | None) -> None:
        """Load the code of the first two rounds: draw noise and masks, and pass zero sums to the program."""
        tables, (site,) = self.tables, self.network.sites
        state, streams = tables.program.start(1), streams_of(seed)
        keys = process_keys(tables, bytes(32), site)
        for facts in tables.sums[:2]:
            values = to_integers(np.zeros((1, facts.length)), facts.grid)
            noise = draw(streams, facts.std, (1, facts.length), site=site, t=facts.t)
            add_mask(values + noise, keys.mask(facts.t, facts.part, (1, facts.length)))
            keys.advance()
            state = tables.after(state, np.zeros((1, facts.length), dtype=np.uint64))

    def part(self, own: range) -> PreparedSums:
        return replace(self, network=self.network.part(own))

    def charges(self, t: int) -> RoundCharges:
        return self.tables.charges(t, site_numbers(self.network))

    def describe(self) -> dict[str, Any]:
        return {"start": "zeros"}

    def method_facts(self, *, simulated: bool) -> dict[str, Any]:
        """The facts of the method. One release contains the sums of all models, so `outputs` is 1."""
        tables, pairs = self.tables, self.tables.pairs
        return {
            "method": "masked",
            "noise": "discrete",
            "loss": tables.program.loss,
            "dimension": tables.program.dimension,
            "data_norm": tables.data_norm,
            "outputs": 1,
            "sums": tables.sums,
            "records": tables.units if self.network.persons is None else None,
            "largest": tables.largest,
            "colluding": tables.colluding,
            "connectivity": None if pairs.connectivity == pairs.sites - 1 else pairs.connectivity,
        }


def process_keys(tables: SumTables, root: bytes, site: int) -> PairKeys:
    """The pair keys of a site, derived from `root`, for a run in one process or on one cluster."""
    partners = tables.pairs.partners(site)
    keys = {other: expand(root, "pair", min(site, other), max(site, other)) for other in partners}
    return PairKeys(site, keys, run=expand(root, "run"), alone=tables.pairs.sites == 1)


class _SharedAdvance:
    """`tables.after`, computed once for all nodes of one process, because they need the same result."""

    def __init__(self, tables: SumTables) -> None:
        self._tables, self._lock = tables, threading.Lock()
        self._last: tuple[int, Message, Any] | None = None

    def __call__(self, state: Any, total: Message) -> Any:
        with self._lock:
            if self._last is None or self._last[0] != state.t or self._last[1] is not total:
                self._last = state.t, total, self._tables.after(state, total)
            return self._last[2]
