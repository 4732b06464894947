"""A shard: many sites of a run, side by side, in one process. No cluster in here.

Before each round a shard is given the vectors that its sites' outside neighbours released last; afterwards it
hands out those that other shards need. Neighbours are added up in the order of the local engine, so every
vector is the same to the last bit, whatever the number of shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..admm.batch import Batch
from ..admm.run import largest_distance
from ..admm.tables import Tables
from ..errors import ParameterError
from ..objective.local import LocalObjective
from ..objective.solver.many import ManySites
from ..rng import SeededStreams
from ..types import Array
from .partition import Part
from .setup import Setup, Start, start_vectors

_MOST = 2048  # sites, and an eighth of a shard's: what a round needs beside the vectors it needs for so many


@dataclass(frozen=True, eq=False)
class ShardTask:
    """What one shard must know of a run: of the other sites, only which vectors cross."""

    part: Part
    tables: Tables
    repeats: int
    seed: int
    tol: float
    start: Start
    refresh: int
    dimension: int
    measure: bool

    @classmethod
    def of(cls, setup: Setup, part: Part) -> ShardTask:
        """The share of `part` in `setup`."""
        if setup.seed is None:
            raise ParameterError("`seed` must be given: shards of one run must draw from the same streams.")
        return cls(
            part=part,
            tables=setup.tables.part(part.own),
            repeats=setup.repeats,
            seed=setup.seed,
            tol=setup.tol,
            start=setup.start,
            refresh=setup.refresh,
            dimension=setup.problem.dimension,
            measure=setup.measure,
        )

    def batches(self, objectives: Sequence[LocalObjective], lam: Array) -> list[tuple[slice, Batch]]:
        """Its sites before the first round, and where each lot of them stands among its own."""
        solvers, streams, lots = ManySites(objectives), SeededStreams(self.seed), []
        solvers.warm_up()
        some = min(_MOST, -(-len(objectives) // 8))
        for first in range(0, len(objectives), some):
            own = slice(first, min(first + some, len(objectives)))
            batch = Batch(
                sites=np.array(self.part.own[own]),
                solvers=solvers.part(own.start, own.stop),
                degrees=self.part.degrees[own],
                tables=self.tables.part(range(own.start, own.stop)),
                tol=self.tol,
                streams=streams,
                refresh=self.refresh,
                lam=lam[own],
            )
            lots.append((own, batch))
        return lots


class StepResult(NamedTuple):
    """One shard's round, for the record.

    losses, accuracies : (sites, repeats), on each site's own rows.
    total : (repeats, d), the sum of its vectors.
    gap : (repeats,), the previous round's largest distance from the network's mean, where that was given.
    """

    losses: Array
    accuracies: Array
    total: Array
    gap: Array | None


@dataclass(frozen=True, eq=False)
class SavedStates:
    """The states of sites first, first + 1, ... after t rounds, each array (sites, repeats, d)."""

    t: int
    first: int
    f: Array
    lam: Array
    heard: Array


class Shard:
    """Some sites of a run, between two rounds: f and `heard` are those of round t."""

    def __init__(self, share: ShardTask, objectives: Sequence[LocalObjective]) -> None:
        self.part, self.measure = share.part, share.measure
        shape = (share.repeats, share.dimension)
        self.lam = np.zeros((len(self.part.own), *shape))
        self.batches = share.batches(objectives, self.lam)
        known = start_vectors(share.start, self.part.columns.tolist(), shape, SeededStreams(share.seed))
        self.f, self.heard = known[self.part.places], self._hear(known)
        self.t, self.fresh = 0, True

    def restore(self, saved: Sequence[SavedStates]) -> None:
        """Go back to the states of a checkpoint, whichever shards wrote them."""
        for part in saved:
            first, last = part.first, part.first + len(part.f)
            start, stop = max(first, self.part.own.start), min(last, self.part.own.stop)
            if start < stop:
                here = slice(start - self.part.own.start, stop - self.part.own.start)
                there = slice(start - first, stop - first)
                self.f[here], self.heard[here] = part.f[there], part.heard[there]
                self.lam[here] = part.lam[there]
        self.t, self.fresh = saved[0].t, True

    def receive(self, blocks: Sequence[Array]) -> None:
        """Take what the neighbours released in the last round, one block per sender: it ends that round."""
        if self.fresh:
            return
        known = np.empty((len(self.part.columns), *self.f.shape[1:]))
        known[self.part.places] = self.f
        for places, block in zip(self.part.inbound.values(), blocks, strict=True):
            known[places] = block
        self.heard = self._hear(known)
        for own, batch in self.batches:
            batch.hear(self.t, self.f[own], self.heard[own])

    def step(self, mean: Array | None = None) -> StepResult:
        """One round of all sites; `mean` is the network's mean in the round before."""
        gap = None if mean is None else self.gap(mean)
        f, measured = np.empty_like(self.f), np.full((2, *self.f.shape[:2]), np.nan)
        for own, batch in self.batches:
            f[own] = batch.primal(self.t + 1, self.f[own], self.heard[own])
            if self.measure:
                measured[:, own] = batch.solvers.metrics(f[own])
        self.f, self.fresh, self.t = f, False, self.t + 1
        return StepResult(measured[0], measured[1], f.sum(axis=0), gap)

    def gap(self, mean: Array) -> Array:
        """(repeats,): the largest distance of a site's last vector from `mean`."""
        return largest_distance(self.f, mean)

    def outgoing(self) -> list[Array]:
        """The last vectors that other shards need, one block per receiver."""
        return [self.f[places] for places in self.part.outbound.values()]

    def states(self) -> SavedStates:
        """The states after the last round that `receive` ended."""
        return SavedStates(self.t, self.part.own.start, self.f, self.lam.copy(), self.heard)

    def _hear(self, known: Array) -> Array:
        flat = known.reshape(len(known), -1)
        return np.asarray(self.part.rows @ flat).reshape(len(self.part.own), *known.shape[1:])
