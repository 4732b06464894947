"""The messages of the last two rounds between the nodes of one process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.types import Array
from ..graph import Graph
from ..methods.base import PreparedMethod
from ..methods.loop import Send


class Messages:
    """The messages of the last two rounds. Neighbours' vectors are added up in the order of their numbers.

    sent : for each node, the last round in which it sent a message.
    """

    def __init__(self, prepared: PreparedMethod, graph: Graph, cuts: Sequence[range]) -> None:
        self._prepared, self._cuts = prepared, cuts
        adjacency = graph.sparse_adjacency
        self._hears = [adjacency[own.start : own.stop] for own in cuts]
        owner = np.repeat(np.arange(len(cuts)), [len(own) for own in cuts])
        self._near = [{k, *owner[rows.indices].tolist()} for k, rows in enumerate(self._hears)]
        self._everybody = set(range(len(cuts)))
        self._vectors: Array | None = None
        self._sums: list[dict[int, Any]] = [{}, {}]
        self._total: tuple[int, Any] | None = None
        self._lock = threading.Lock()
        self.sent = [0] * len(cuts)

    def needs(self, k: int, t: int) -> set[int]:
        """The nodes whose messages of round t node k needs before it can continue."""
        return self._near[k] if self._prepared.hears(t) == "neighbours" else self._everybody

    def put(self, k: int, sent: Send) -> None:
        """Store the message that node k sent."""
        t, own = sent.t, slice(self._cuts[k].start, self._cuts[k].stop)
        if self._prepared.hears(t) == "neighbours":
            with self._lock:
                if self._vectors is None:
                    shape = (2, self._cuts[-1].stop, *sent.message.shape[1:])
                    self._vectors = np.empty(shape, dtype=sent.message.dtype)
            self._vectors[t % 2, own] = sent.message
        else:
            self._sums[t % 2][k] = sent.message.sum(axis=0, dtype=sent.message.dtype)
        self.sent[k] = t

    def heard(self, k: int, t: int) -> Any:
        """What node k receives in round t: for each site, the sum of its neighbours' (or of all) messages."""
        if self._prepared.hears(t) == "neighbours":
            if self._vectors is None:
                raise LookupError(f"no message of round {t} was sent")
            return self._add_up(k, self._vectors[t % 2])
        with self._lock:
            if self._total is None or self._total[0] != t:
                parts = self._sums[t % 2]
                total = parts[0].copy()
                for number in range(1, len(parts)):
                    total += parts[number]
                self._total = t, total
            return self._total[1]

    def known_to(self, own: range, vectors: Array) -> Array:
        """For each site in `own`, the sum of its neighbours' vectors; `vectors` has one vector per site."""
        return self._add_up(self._cuts.index(own), vectors)

    def _add_up(self, k: int, vectors: Array) -> Array:
        flat = vectors.reshape(len(vectors), -1)
        return np.asarray(self._hears[k] @ flat).reshape(-1, *vectors.shape[1:])
