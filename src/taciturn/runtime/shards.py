"""Shards: groups of sites of a run. Each process of a cluster computes one shard. This file does not use Ray.

Before each round, a shard gets the messages that other shards sent to its sites in the previous round. After
the round, it returns the messages that other shards need. A shard adds up neighbours' vectors in the same
order as the local engine, so every vector is the same to the last bit for any number of shards. The driver, a
process without sites, runs the loop of `methods/loop.py` and charges the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core import checks
from ..core.errors import ParameterError
from ..core.types import Array
from ..graph import Graph
from ..methods.base import PreparedMethod
from ..methods.run import largest_distance
from .checkpoint import Checkpoint
from .setup import Setup

Places = NDArray[np.int64]

_MOST = 2048  # the most sites for which one node computes messages, so that temporary arrays stay small


@dataclass(frozen=True, eq=False)
class Part:
    """One shard of the network: its sites, and the vectors that it sends and receives.

    own : the sites of this shard.
    columns : the sites whose vectors the shard needs, including its own sites, in increasing order.
    rows : the rows of the adjacency matrix for `own`, with the columns `columns`.
    inbound : {sender: positions in `columns`}, for the vectors that other shards send to this shard.
    outbound : {receiver: positions in `own`}, for the vectors that this shard sends.
    """

    own: range
    columns: NDArray[np.int64]
    rows: sparse.csr_array
    inbound: Mapping[int, Places]
    outbound: Mapping[int, Places]

    @property
    def degrees(self) -> NDArray[np.int64]:
        """The number of neighbours V_i of each site of this shard."""
        return np.diff(self.rows.indptr).astype(np.int64)

    @property
    def places(self) -> Places:
        """The positions of this shard's own sites in `columns`."""
        return np.searchsorted(self.columns, np.array(self.own, dtype=np.int64))


class ShardTask(NamedTuple):
    """The facts that one shard needs. About other shards, they say only which vectors are exchanged."""

    part: Part
    prepared: PreparedMethod
    repeats: int
    seed: int
    measure: bool

    @classmethod
    def of(cls, setup: Setup, part: Part) -> ShardTask:
        """The task of the shard `part` in the run `setup`."""
        if setup.seed is None:
            raise ParameterError(
                "`seed` must be given: all shards of a run must draw noise from the same streams."
            )
        return cls(part, setup.prepared.part(part.own), setup.repeats, setup.seed, setup.measure)


class StepResult(NamedTuple):
    """A shard's report on the round that it just completed, for the record.

    losses, accuracies : (sites, repeats), measured with each site's model on the site's own rows.
    total : (repeats, d), the sum of the models of the shard's sites.
    gap : (repeats,), for the previous round, the largest distance of a site's model from the mean model; None
        if the mean model is not known.
    """

    losses: Array
    accuracies: Array
    total: Array
    gap: Array | None


class Shard:
    """Some sites of a run. The shard divides them among nodes; a node computes at most `_MOST` sites.

    `t` is the last round whose messages are computed; at first the round of the checkpoint, or 0.
    """

    def __init__(
        self, task: ShardTask, objectives: Sequence[Any], saver: Checkpoint | None = None, t: int = 0
    ) -> None:
        self.part, self.task, self.saver, self.t = task.part, task, saver, t
        count, prepared = len(self.part.own), task.prepared
        some = min(_MOST, -(-count // 8))
        self.cuts = [range(first, min(first + some, count)) for first in range(0, count, some)]
        self.nodes = prepared.nodes(objectives, self.cuts, seed=task.seed, repeats=task.repeats)
        first = None if t else prepared.first(self.part.columns.tolist(), task.repeats, task.seed)
        rows = zip(self.cuts, self.nodes, strict=True)
        self.states = [self._start(own, node, first) for own, node in rows]
        self.sent: list[Any] = []
        self._models: Array | None = None

    def _start(self, own: range, node: Any, first: Array | None) -> Any:
        """The state from which a node's sites start: the state before round 1, or that of a checkpoint."""
        sites = range(self.part.own.start + own.start, self.part.own.start + own.stop)
        if self.saver is not None and self.t:
            return node.restored(self.t, self.saver.load_states(self.t, sites))
        if first is None:
            return node.start(None, None)
        return node.start(first[self.part.places[own.start : own.stop]], self._hear(own, first))

    def receive(self, heard: Sequence[Any], mean: Array | None, *, save: bool) -> StepResult | None:
        """Complete the last computed round with other shards' messages; None if no round was computed."""
        if not self.sent:
            return None
        gap = None if mean is None else self.gap(mean)
        parts = self._heard(heard)
        rows = zip(self.nodes, self.states, self.sent, parts, strict=True)
        self.states = [node.after(state, sent, near) for node, state, sent, near in rows]
        models = np.empty((len(self.part.own), self.task.repeats, self.task.prepared.model_size))
        measured = np.full((2, *models.shape[:2]), np.nan)
        for own, node, state in zip(self.cuts, self.nodes, self.states, strict=True):
            cut = slice(own.start, own.stop)
            models[cut] = node.models(state)
            if self.task.measure:
                measured[:, cut] = node.metrics(models[cut])
            if save and self.saver is not None:
                self.saver.save_states(state.t, self.part.own.start + own.start, node.saved(state))
        self._models = models
        return StepResult(measured[0], measured[1], models.sum(axis=0), gap)

    def compute(self) -> list[Any]:
        """The messages of the next round: one block per receiving shard, or one sum for all shards."""
        self.t += 1
        self.sent = [node.message(state) for node, state in zip(self.nodes, self.states, strict=True)]
        if self._neighbours():
            vectors = np.concatenate(self.sent)
            return [vectors[places] for places in self.part.outbound.values()]
        total = self.sent[0].sum(axis=0, dtype=self.sent[0].dtype)
        for sent in self.sent[1:]:
            total += sent.sum(axis=0, dtype=sent.dtype)
        return [total]

    @property
    def models(self) -> Array:
        """The models of this shard's sites after the last complete round, (sites, repeats, d)."""
        if self._models is None:
            raise LookupError("no round has been completed")
        return self._models

    @property
    def coordinates(self) -> Array | None:
        """The whitened coordinates of the run, which are the same at every site; None without whitening."""
        return self.task.prepared.coordinates(self.nodes[0], self.states[0])

    def gap(self, mean: Array) -> Array:
        """(repeats,): the largest distance of a site's last model from `mean`."""
        return largest_distance(self.models, mean)

    def _neighbours(self) -> bool:
        return self.task.prepared.hears(self.t) == "neighbours"

    def _heard(self, heard: Sequence[Any]) -> list[Any]:
        """The input of each node: the total of all sites, or the sum of neighbours' vectors for each site."""
        if not self._neighbours():
            return [heard[0]] * len(self.cuts)
        vectors = np.concatenate(self.sent)
        known = np.empty((len(self.part.columns), *vectors.shape[1:]))
        known[self.part.places] = vectors
        for places, block in zip(self.part.inbound.values(), heard, strict=True):
            known[places] = block
        return [self._hear(own, known) for own in self.cuts]

    def _hear(self, own: range, known: Array) -> Array:
        rows = self.part.rows[own.start : own.stop]
        return np.asarray(rows @ known.reshape(len(known), -1)).reshape(len(own), *known.shape[1:])


def cut(graph: Graph, shards: int) -> list[Part]:
    """Cut sites 0..n-1, in order, into at most `shards` parts whose sizes differ by at most one."""
    bounds = np.linspace(0, graph.n, min(checks.whole("shards", shards, least=1), graph.n) + 1).astype(int)
    pieces = [range(a, b) for a, b in pairwise(bounds.tolist())]
    needed = [_columns(graph, own) for own in pieces]
    crossing = {
        (a, b): sites
        for b, columns in enumerate(needed)
        for a, own in enumerate(pieces)
        if a != b and (sites := columns[(columns >= own.start) & (columns < own.stop)]).size
    }
    return [
        Part(
            own=own,
            columns=needed[s],
            rows=_rows(graph, own, needed[s]),
            inbound={a: np.searchsorted(needed[s], v) for (a, b), v in sorted(crossing.items()) if b == s},
            outbound={b: v - own.start for (a, b), v in sorted(crossing.items()) if a == s},
        )
        for s, own in enumerate(pieces)
    ]


def _columns(graph: Graph, own: range) -> NDArray[np.int64]:
    """The sites of `own` and all their neighbours, in increasing order."""
    heard = graph.sparse_adjacency[own.start : own.stop].indices
    return np.union1d(np.array(own, dtype=np.int64), heard.astype(np.int64))


def _rows(graph: Graph, own: range, columns: NDArray[np.int64]) -> sparse.csr_array:
    """Rows of the adjacency matrix. Entries stay in the order of sites, so that sums keep their bits."""
    rows = graph.sparse_adjacency[own.start : own.stop]
    places = np.searchsorted(columns, rows.indices)
    return sparse.csr_array((rows.data, places, rows.indptr), shape=(len(own), len(columns)))
