"""A shard: many sites of a run in one process of a cluster. This file does not use Ray.

Before each round, a shard gets the messages that other shards sent to its sites in the previous round. After
the round, it returns the messages that other shards need. A shard adds up neighbours' vectors in the same
order as the local engine, so every vector is the same to the last bit for any number of shards. The driver
runs the loop of `methods/loop.py` and makes the charges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import ParameterError
from ..core.types import Array
from ..methods.base import PreparedMethod
from ..methods.run import largest_distance
from .checkpoint import Checkpoint
from .partition import Part
from .setup import Setup

_MOST = 2048  # a node has at most this many sites, and an eighth of the shard: small temporary arrays


class ShardTask(NamedTuple):
    """The facts that one shard needs about a run. Of other shards it knows only which vectors to exchange."""

    part: Part
    prepared: PreparedMethod
    repeats: int
    seed: int
    measure: bool

    @classmethod
    def of(cls, setup: Setup, part: Part) -> ShardTask:
        """The task of the shard `part` in the run `setup`."""
        if setup.seed is None:
            raise ParameterError("`seed` must be given: shards of one run must draw from the same streams.")
        return cls(part, setup.prepared.part(part.own), setup.repeats, setup.seed, setup.measure)


class StepResult(NamedTuple):
    """A shard's report on the round that it just completed, for the record.

    losses, accuracies : (sites, repeats), of each site's model on the site's own rows.
    total : (repeats, d), the sum of the models of the shard's sites.
    gap : (repeats,), in the previous round, the largest distance of a model from the mean model; None if the
        mean model is not known.
    """

    losses: Array
    accuracies: Array
    total: Array
    gap: Array | None


class Shard:
    """Some sites of a run, between two rounds. `t` is the last round whose messages were computed."""

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
        """End the last computed round with the messages of other shards; return None if there is no round."""
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
