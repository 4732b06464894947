"""A node of masked sums: the part of a process that computes the messages and the result of some sites.

In each round a program asks for one sum. The share of a site is what its rows add to the sum. The site sends
the share plus noise plus masks. The masks cancel in the total. Every site receives the same total, so all
sites have the same state and the same result, to the last bit. This file does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.types import Array
from ...privacy.facts import RoundCharges
from ...privacy.sums import SumFacts
from ...rng import Streams
from ..base import site_metrics
from . import sums
from .masks import Message, PairKeys
from .program import PrivateHalf, SumTables
from .sums import Integers, add_mask


@dataclass(frozen=True, eq=False)
class SumsNode:
    """The sites that one process computes, in a run of one program of sums.

    All fields except the keys stay fixed during the run.

    halves : the private half of each site, which computes its shares.   keys : the pair keys of each site.
    after_total : used instead of `tables.after` if several nodes in one process share one result.
    """

    sites: NDArray[np.int64]
    halves: Sequence[PrivateHalf]
    tables: SumTables
    keys: Sequence[PairKeys]
    streams: Streams
    repeats: int = 1
    after_total: Callable[[Any, Message], Any] | None = None

    @property
    def rounds(self) -> int:
        return self.tables.rounds

    def start(self, first: Array | None = None, heard: Array | None = None) -> Any:
        """The program's state before its first sum."""
        return self.tables.program.start(self.repeats)

    def message(self, state: Any) -> Message:
        """The messages of the next round, (sites, repeats, length). Deletes the keys of their masks."""
        facts, query = self.tables.sums[state.t], self.tables.program.query(state)
        shape = (self.repeats, facts.length)
        messages = np.empty((len(self.sites), *shape), dtype=np.uint64)
        rows = zip(messages, self.sites.tolist(), self.halves, self.keys, strict=True)
        for message, site, half, keys in rows:
            share = noisy_share(half, query, facts, self.streams, site=site, repeats=self.repeats)
            message[:] = add_mask(share, keys.mask(facts.t, facts.part, shape))
            keys.advance()
        return messages

    def charges(self, t: int) -> RoundCharges:
        """The cost of the messages of round t, which follows from the noise of the sum."""
        return self.tables.charges(t, self.sites)

    def after(self, state: Any, message: Message, heard: Message) -> Any:
        """The state after a round in which all messages added up to `heard`."""
        return (self.after_total or self.tables.after)(state, heard)

    def models(self, state: Any) -> Array:
        """The result of the program, the same at all sites."""
        result = self.tables.program.result(state)
        return np.broadcast_to(result, (len(self.sites), *result.shape))

    def metrics(self, models: Array) -> tuple[Array, Array]:
        return site_metrics(self.halves, models)


def noisy_share(
    half: PrivateHalf, query: Any, facts: SumFacts, streams: Streams, *, site: int, repeats: int
) -> Integers:
    """One site's share of a sum with fresh noise, but without a mask: (repeats, length)."""
    shape = (repeats, facts.length)
    values = np.ascontiguousarray(np.broadcast_to(half.integers(query, facts), shape))
    return values + sums.draw(streams, facts.std, shape, site=site, t=facts.t)
