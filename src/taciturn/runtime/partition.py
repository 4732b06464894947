"""Cut a network into shards (groups of sites), and list the vectors that the shards exchange."""

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
    """Rows of the adjacency matrix, with entries in their original order, so that sums keep their bits."""
    rows = graph.sparse_adjacency[own.start : own.stop]
    places = np.searchsorted(columns, rows.indices)
    return sparse.csr_array((rows.data, places, rows.indptr), shape=(len(own), len(columns)))
