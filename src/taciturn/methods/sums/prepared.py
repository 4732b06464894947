"""A prepared program of masked sums: its tables, the accountant's facts, and its nodes."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.types import Array
from ...privacy.facts import RoundCharges
from ...rng import streams_of
from ..base import Audience, Network, PreparedMethod, site_numbers
from .masks import Message, PairKeys, expand
from .node import SumsNode, sum_charges
from .program import SumTables


@dataclass(frozen=True, eq=False)
class PreparedSums(PreparedMethod):
    """One run of a program; every site adds to every sum and receives every total."""

    network: Network
    tables: SumTables

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

    def part(self, own: range) -> PreparedSums:
        return replace(self, network=self.network.part(own))

    def charges(self, t: int) -> RoundCharges:
        return sum_charges(self.tables, t, site_numbers(self.network))

    def describe(self) -> dict[str, Any]:
        return {"start": "zeros"}

    def method_facts(self, *, simulated: bool) -> dict[str, Any]:
        """The links carry messages, and do not enter the maths; all outputs are one release."""
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
    """The pair keys of a site whose partners are all in this process, or on one cluster."""
    partners = tables.pairs.partners(site)
    keys = {other: expand(root, "pair", min(site, other), max(site, other)) for other in partners}
    return PairKeys(site, keys, run=expand(root, "run"), alone=tables.pairs.sites == 1)


class _SharedAdvance:
    """`tables.after` for all nodes of one process: they all ask the same, and it is computed once."""

    def __init__(self, tables: SumTables) -> None:
        self._tables, self._lock = tables, threading.Lock()
        self._last: tuple[int, Message, Any] | None = None

    def __call__(self, state: Any, total: Message) -> Any:
        with self._lock:
            if self._last is None or self._last[0] != state.t or self._last[1] is not total:
                self._last = state.t, total, self._tables.after(state, total)
            return self._last[2]
