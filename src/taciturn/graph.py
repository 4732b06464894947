"""The graph of a network: which sites exchange messages. A `Graph` is undirected, simple and connected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .core import checks
from .core.errors import GraphError

if TYPE_CHECKING:
    NxGraph = nx.Graph[Any]

FAMILIES = ("complete", "ring", "star", "path")
"""The names of the families of graphs. The name and the number of sites determine the graph."""

GraphLike: TypeAlias = "Graph | str | NxGraph"
"""A graph, the name of a family, or a networkx graph."""


@dataclass(frozen=True)
class Graph:
    """G(N, E): sites 0..n-1 and the links between them.

    >>> graph = Graph.ring(5)
    >>> graph.n, graph.neighbors(0), graph.degrees.tolist()
    (5, (1, 4), [2, 2, 2, 2, 2])
    """

    n: int
    edges: tuple[tuple[int, int], ...]
    name: str = "custom"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.whole("n", self.n, least=1))
        object.__setattr__(self, "edges", _checked_edges(self.n, self.edges))
        _check_connected(self.n, self.to_networkx())

    # -- families -------------------------------------------------------------------------------

    @classmethod
    def complete(cls, n: int) -> Graph:
        """Every site is linked to every other site; a network of one site has no links."""
        n = checks.whole("n", n, least=1)
        return cls(n, tuple((i, j) for i in range(n) for j in range(i + 1, n)), "complete")

    @classmethod
    def ring(cls, n: int) -> Graph:
        """Each site is linked to the next site, and the last site to the first."""
        n = checks.whole("n", n, least=3)
        return cls(n, tuple((i, (i + 1) % n) for i in range(n)), "ring")

    @classmethod
    def path(cls, n: int) -> Graph:
        """Each site is linked to the next site; the last site and the first are not linked."""
        n = checks.whole("n", n, least=2)
        return cls(n, tuple((i, i + 1) for i in range(n - 1)), "path")

    @classmethod
    def star(cls, n: int) -> Graph:
        """Site 0 is linked to all other sites, which have no other link."""
        n = checks.whole("n", n, least=2)
        return cls(n, tuple((0, i) for i in range(1, n)), "star")

    @classmethod
    def grid(cls, rows: int, columns: int) -> Graph:
        """Sites on a rectangular grid, numbered row by row, each linked to the sites next to it."""
        rows, columns = checks.whole("rows", rows, least=1), checks.whole("columns", columns, least=1)
        right = [(r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)]
        down = [(r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)]
        return cls(rows * columns, tuple(right + down), "grid")

    @classmethod
    def random_regular(cls, n: int, degree: int, *, seed: int) -> Graph:
        """A random graph in which every site has `degree` neighbours. Raises if it is not connected."""
        n, degree = checks.whole("n", n, least=2), checks.whole("degree", degree, least=1)
        if degree >= n or n * degree % 2:
            raise GraphError(f"`degree` must be below n = {n}, and n * degree must be even; got {degree}.")
        found = nx.random_regular_graph(degree, n, seed=checks.whole("seed", seed))
        return cls.from_networkx(found, name="random_regular")

    @classmethod
    def erdos_renyi(cls, n: int, p: float, *, seed: int) -> Graph:
        """Each pair of sites is linked with probability p. Raises if the graph is not connected."""
        n = checks.whole("n", n, least=2)
        if p != 1:
            p = checks.probability("p", p)
        found = nx.gnp_random_graph(n, p, seed=checks.whole("seed", seed))
        return cls.from_networkx(found, name="erdos_renyi")

    @classmethod
    def of(cls, graph: GraphLike, n: int | None = None) -> Graph:
        """A graph from a `Graph`, the name of a family, or a networkx graph; `n` is the number of sites.

        A "ring" of two sites is a path.

        >>> Graph.of("ring", 5) == Graph.ring(5)
        True
        """
        if isinstance(graph, nx.Graph):
            graph = cls.from_networkx(graph)
        if isinstance(graph, Graph):
            if n is not None and graph.n != n:
                raise GraphError(f"`graph` must have {n} nodes, one per site; got {graph.n}.")
            return graph
        family = checks.choice("graph", graph, FAMILIES)
        if n is None:
            raise GraphError(f"`n`, the number of sites, must be given for `graph` = {family!r}.")
        if family == "ring" and n == 2:
            return cls.path(2)
        found: Graph = getattr(cls, family)(n)
        return found

    # -- conversions ----------------------------------------------------------------------------

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[int, int]], *, n: int | None = None) -> Graph:
        """A graph from pairs of site numbers; `n` defaults to the largest number + 1."""
        pairs = _pairs(edges)
        if not pairs:
            raise GraphError("`edges` must contain at least one pair; it is empty.")
        return cls(max(max(pair) for pair in pairs) + 1 if n is None else n, pairs)

    @classmethod
    def from_networkx(cls, graph: NxGraph, *, name: str = "custom") -> Graph:
        """A graph from an undirected networkx graph; sites are numbered in the order of its nodes."""
        if graph.is_directed() or graph.is_multigraph():
            raise GraphError("`graph` must be undirected and simple; got a directed graph or a multigraph.")
        number = {node: i for i, node in enumerate(graph.nodes)}
        return cls(len(number), tuple((number[u], number[v]) for u, v in graph.edges), name)

    def to_networkx(self) -> NxGraph:
        """This graph as a networkx graph with nodes 0..n-1."""
        graph: NxGraph = nx.Graph()
        graph.add_nodes_from(range(self.n))
        graph.add_edges_from(self.edges)
        return graph

    # -- neighbours, degrees and the adjacency matrix -------------------------------------------

    def neighbors(self, i: int) -> tuple[int, ...]:
        """V_i, the neighbours of site i, in increasing order."""
        return self._neighbors[i]

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """The number of neighbours of every site, |V_i|."""
        degrees = np.array([len(row) for row in self._neighbors], dtype=np.int64)
        degrees.flags.writeable = False
        return degrees

    @cached_property
    def adjacency(self) -> NDArray[np.float64]:
        """The adjacency matrix A, dense and read-only: a_ij = 1 if i and j are linked."""
        adjacency = np.asarray(self.sparse_adjacency.toarray(), dtype=np.float64)
        adjacency.flags.writeable = False
        return adjacency

    @cached_property
    def sparse_adjacency(self) -> sparse.csr_array:
        """The adjacency matrix A in CSR form, for graphs of many sites."""
        i, j = np.array(self.edges, dtype=np.int64).reshape(-1, 2).T
        ones = np.ones(2 * len(i))
        return sparse.csr_array((ones, (np.r_[i, j], np.r_[j, i])), shape=(self.n, self.n))

    @cached_property
    def _neighbors(self) -> tuple[tuple[int, ...], ...]:
        rows: list[list[int]] = [[] for _ in range(self.n)]
        for i, j in self.edges:
            rows[i].append(j)
            rows[j].append(i)
        return tuple(tuple(sorted(row)) for row in rows)

    def __repr__(self) -> str:
        return f"Graph({self.name}, n={self.n}, edges={len(self.edges)})"


def _pairs(edges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The links as pairs of whole numbers."""
    try:
        return tuple((index(i), index(j)) for i, j in edges)
    except (TypeError, ValueError):
        raise GraphError("`edges` must be pairs of site numbers, such as [(0, 1), (1, 2)].") from None


def _checked_edges(n: int, edges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The links in sorted order, without duplicates. In each pair, the smaller number comes first."""
    checked = set()
    for i, j in _pairs(edges):
        if i == j:
            raise GraphError(
                f"`edges` must join two different sites; got the self-loop ({i}, {j}). Remove it."
            )
        if not (0 <= i < n and 0 <= j < n):
            raise GraphError(f"`edges` must name sites 0 to {n - 1}; got ({i}, {j}).")
        checked.add((min(i, j), max(i, j)))
    return tuple(sorted(checked))


def _check_connected(n: int, graph: NxGraph) -> None:
    components = [sorted(component) for component in nx.connected_components(graph)]
    if len(components) > 1:
        named = "; ".join(_list_sites(component) for component in components[:4])
        more = f"; and {len(components) - 4} more" if len(components) > 4 else ""
        raise GraphError(
            f"`edges` must connect all {n} sites; got {len(components)} components: {named}{more}. "
            "Sites in different components can never agree. Add links; for a random graph, change `seed`."
        )


def _list_sites(component: list[int]) -> str:
    shown = ", ".join(map(str, component[:8]))
    return f"{{{shown}{', ...' if len(component) > 8 else ''}}}"
