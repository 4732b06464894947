"""A shard: many sites of a run, one after the other, in one process. No cluster in here.

Before each round a shard is given the vectors that its sites' outside neighbours released last; afterwards it
hands out those that other shards need. Neighbours are added up in the order of the local engine, so every
vector is the same to the last bit, whatever the number of shards.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..admm.node import Node, NodeState, loop
from ..admm.tables import Tables
from ..errors import ParameterError
from ..objective.local import LocalObjective
from ..privacy.facts import Charge
from ..rng import SeededStreams
from ..types import Array
from .partition import Part
from .setup import Setup, Start, start_vectors

Loop = Generator[Array, Array, NodeState]


@dataclass(frozen=True, eq=False)
class Share:
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
    def of(cls, setup: Setup, part: Part) -> Share:
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

    def nodes(self, objectives: Sequence[LocalObjective]) -> list[Node]:
        """The nodes of its sites."""
        streams, degrees = SeededStreams(self.seed), self.part.degrees
        return [
            Node(
                site=i,
                objective=objectives[k],
                degree=int(degrees[k]),
                tables=self.tables.site(k),
                tol=self.tol,
                streams=streams,
                repeats=self.repeats,
                refresh=self.refresh,
            )
            for k, i in enumerate(self.part.own)
        ]


class Stepped(NamedTuple):
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
    """Some sites of a run, between two rounds. `keep` makes their states ready to be saved."""

    def __init__(self, share: Share, objectives: Sequence[LocalObjective], *, keep: bool = False) -> None:
        self.part, self.measure, self.keep = share.part, share.measure, keep
        self.objectives = list(objectives)
        self.nodes = share.nodes(self.objectives)
        shape = (share.repeats, share.dimension)
        known = start_vectors(share.start, self.part.columns.tolist(), shape, SeededStreams(share.seed))
        self.f, self.heard = known[self.part.places], self._hear(known)
        self.t, self.fresh = 0, True
        states = [NodeState.start(f, heard) for f, heard in zip(self.f, self.heard, strict=True)]
        self.loops, self.states = self._loops(states), states if keep else []

    def restore(self, saved: Sequence[SavedStates]) -> None:
        """Go back to the states of a checkpoint, whichever shards wrote them."""
        found = {
            part.first + k: NodeState(part.t, part.f[k], part.lam[k], part.heard[k])
            for part in saved
            for k in range(len(part.f))
        }
        states = [found[i] for i in self.part.own]
        self.f = np.stack([state.f for state in states])
        self.t, self.fresh = states[0].t, True
        self.loops, self.states = self._loops(states), states if self.keep else []

    def receive(self, blocks: Sequence[Array]) -> None:
        """Take what the neighbours released in the last round, one block per sender: it ends that round."""
        if self.fresh:
            return
        known = np.empty((len(self.part.columns), *self.f.shape[1:]))
        known[self.part.places] = self.f
        for places, block in zip(self.part.inbound.values(), blocks, strict=True):
            known[places] = block
        self.heard = self._hear(known)
        if self.keep:
            self.states = [
                node.dual(state, self.f[k], self.heard[k], self.t)
                for k, (node, state) in enumerate(zip(self.nodes, self.states, strict=True))
            ]

    def step(self, mean: Array | None = None) -> Stepped:
        """One round of all sites; `mean` is the network's mean in the round before."""
        gap = None if mean is None else self.gap(mean)
        f = np.empty_like(self.f)
        losses, accuracies = np.full((2, *f.shape[:2]), np.nan)
        for k, (site, objective) in enumerate(zip(self.loops, self.objectives, strict=True)):
            f[k] = next(site) if self.fresh else site.send(self.heard[k])
            if self.measure:
                losses[k], accuracies[k] = objective.metrics(f[k])
        self.f, self.fresh, self.t = f, False, self.t + 1
        return Stepped(losses, accuracies, f.sum(axis=0), gap)

    def gap(self, mean: Array) -> Array:
        """(repeats,): the largest distance of a site's last vector from `mean`."""
        return np.asarray(np.linalg.norm(self.f - mean, axis=2).max(axis=0))

    def outgoing(self) -> list[Array]:
        """The last vectors that other shards need, one block per receiver."""
        return [self.f[places] for places in self.part.outbound.values()]

    def saved(self) -> SavedStates:
        """The states after the last round that `receive` ended."""
        return SavedStates(
            t=self.states[0].t,
            first=self.part.own.start,
            f=np.stack([state.f for state in self.states]),
            lam=np.stack([state.lam for state in self.states]),
            heard=np.stack([state.heard for state in self.states]),
        )

    def _loops(self, states: Sequence[NodeState]) -> list[Loop]:
        nodes = zip(self.nodes, states, strict=True)
        return [loop(node, state, charge=_charged) for node, state in nodes]

    def _hear(self, known: Array) -> Array:
        flat = known.reshape(len(known), -1)
        return np.asarray(self.part.rows @ flat).reshape(len(self.part.own), *known.shape[1:])


def _charged(charge: Charge) -> None:
    """The driver charges a round before it asks any shard for it."""
