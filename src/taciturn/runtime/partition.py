"""A network cut into shards: which sites each one holds, and which vectors each pair exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core import checks
from ..graph import Graph

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """One shard's piece of the network.

    own : its sites.
    columns : the sites whose vectors it must know, its own among them, in increasing order.
    rows : the rows of the adjacency matrix of `own`, over `columns`.
    inbound : {sender: places in `columns`}, for what each other shard sends it.
    outbound : {receiver: places in `own`}, for what it sends.
    """

    own: range
    columns: NDArray[np.int64]
    rows: sparse.csr_array
    inbound: Mapping[int, Places]
    outbound: Mapping[int, Places]

    @property
    def degrees(self) -> NDArray[np.int64]:
        """V_i of its sites."""
        return np.diff(self.rows.indptr).astype(np.int64)

    @property
    def places(self) -> Places:
        """The places of its own sites in `columns`."""
        return np.searchsorted(self.columns, np.array(self.own, dtype=np.int64))


def cut(graph: Graph, shards: int) -> list[Part]:
    """Sites 0..n-1 in order, in at most `shards` pieces whose sizes differ by at most one."""
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
    """Rows of A in the order of its entries, so that sums come out as in one process."""
    rows = graph.sparse_adjacency[own.start : own.stop]
    places = np.searchsorted(columns, rows.indices)
    return sparse.csr_array((rows.data, places, rows.indptr), shape=(len(own), len(columns)))
