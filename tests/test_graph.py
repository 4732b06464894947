"""Graph: families, conversions, queries of algorithms, and every refusal."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pytest

from taciturn import Graph
from taciturn.core.errors import GraphError, ParameterError

FAMILIES = [
    Graph.complete(6),
    Graph.ring(6),
    Graph.path(6),
    Graph.star(6),
    Graph.grid(2, 3),
    Graph.random_regular(6, 3, seed=0),
    Graph.erdos_renyi(6, 0.8, seed=0),
]


@pytest.mark.parametrize("graph", FAMILIES, ids=lambda graph: graph.name)
def test_every_family_is_simple_connected_and_consistent(graph):
    assert graph.n == 6
    A = graph.adjacency
    assert (A == A.T).all() and (np.diag(A) == 0).all()
    assert set(np.unique(A)) <= {0.0, 1.0}
    assert graph.degrees.tolist() == A.sum(axis=1).tolist()
    assert (graph.sparse_adjacency.toarray() == A).all()
    for i in range(6):
        assert graph.neighbors(i) == tuple(np.flatnonzero(A[i]))
    assert all(i < j for i, j in graph.edges) and list(graph.edges) == sorted(graph.edges)
    assert nx.is_connected(graph.to_networkx())


def test_shapes_of_the_families():
    assert len(Graph.complete(6).edges) == 15
    assert Graph.ring(5).degrees.tolist() == [2] * 5
    assert Graph.path(4).edges == ((0, 1), (1, 2), (2, 3))
    assert Graph.star(4).degrees.tolist() == [3, 1, 1, 1]
    assert Graph.grid(2, 3).edges == ((0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5))
    assert Graph.random_regular(8, 3, seed=1).degrees.tolist() == [3] * 8
    assert Graph.erdos_renyi(5, 1, seed=0).edges == Graph.complete(5).edges


def test_random_families_repeat_with_their_seed():
    assert Graph.random_regular(20, 4, seed=3) == Graph.random_regular(20, 4, seed=3)
    assert Graph.random_regular(20, 4, seed=3) != Graph.random_regular(20, 4, seed=4)
    assert Graph.erdos_renyi(20, 0.5, seed=3) == Graph.erdos_renyi(20, 0.5, seed=3)


def test_immutable():
    graph = Graph.ring(4)
    for array in (graph.adjacency, graph.degrees):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    with pytest.raises(AttributeError):
        graph.n = 5
    assert hash(graph) == hash(Graph.ring(4))
    assert repr(graph) == "Graph(ring, n=4, edges=4)"


def test_conversions():
    graph = Graph.from_edges([(2, 1), (0, 1), (1, 2)])
    assert graph.n == 3 and graph.edges == ((0, 1), (1, 2))
    assert Graph.from_edges([(0, 1)], n=2).n == 2
    named = nx.Graph([("b", "a"), ("a", "c")])
    assert Graph.from_networkx(named).edges == ((0, 1), (1, 2))
    assert Graph.from_networkx(Graph.grid(3, 3).to_networkx(), name="grid") == Graph.grid(3, 3)


def test_disconnected_names_the_components_and_the_fix():
    with pytest.raises(GraphError) as caught:
        Graph.from_edges([(0, 1), (2, 3)])
    assert str(caught.value) == (
        "`edges` must connect all 4 sites; got 2 components: {0, 1}; {2, 3}. "
        "Sites in different components can never agree. Add links; for a random graph, change `seed`."
    )
    with pytest.raises(GraphError, match=r"got 5 components: .*; and 1 more\."):
        Graph(6, ((0, 1),))
    many = [(i, i + 1) for i in range(11)]
    with pytest.raises(GraphError, match=r"\{0, 1, 2, 3, 4, 5, 6, 7, \.\.\.\}; \{12\}"):
        Graph(13, tuple(many))
    with pytest.raises(GraphError, match="components"):
        Graph.erdos_renyi(30, 0.01, seed=0)


def test_refusals():
    with pytest.raises(GraphError, match=r"self-loop \(1, 1\)"):
        Graph.from_edges([(0, 1), (1, 1)])
    with pytest.raises(GraphError, match=r"`edges` must name sites 0 to 1; got \(0, 2\)"):
        Graph(2, ((0, 1), (0, 2)))
    with pytest.raises(GraphError, match=r"got \(-1, 0\)"):
        Graph(2, ((-1, 0),))
    with pytest.raises(GraphError, match="`edges` must contain at least one pair; it is empty"):
        Graph.from_edges([])
    for directed in (nx.DiGraph([(0, 1)]), nx.MultiGraph([(0, 1), (0, 1)])):
        with pytest.raises(GraphError, match="must be undirected and simple"):
            Graph.from_networkx(directed)
    for n, degree in ((5, 3), (4, 4), (4, 5)):
        words = f"`degree` must be below n = {n}, and n * degree must be even; got {degree}"
        with pytest.raises(GraphError, match=re.escape(words)):
            Graph.random_regular(n, degree, seed=0)


@pytest.mark.parametrize("name", ["complete", "ring", "star", "path"])
def test_a_name_is_taken_for_its_family(name):
    assert Graph.of(name, 4) == getattr(Graph, name)(4)
    assert Graph.of(name, 2) == Graph(2, ((0, 1),), Graph.of(name, 2).name)


def test_a_graph_is_taken_as_it_is_and_one_of_networkx_by_its_order():
    ring = Graph.ring(4)
    assert Graph.of(ring) is ring and Graph.of(ring, 4) is ring
    assert Graph.of(ring.to_networkx(), 4).edges == ring.edges
    for graph in (ring, ring.to_networkx()):
        with pytest.raises(GraphError, match="`graph` must have 5 nodes, one per site; got 4"):
            Graph.of(graph, 5)
    with pytest.raises(ParameterError, match="`graph` must be one of complete, ring, star, path; got 'mesh'"):
        Graph.of("mesh", 4)
    with pytest.raises(GraphError, match="the number of sites, must be given for `graph` = 'ring'"):
        Graph.of("ring")


@pytest.mark.parametrize(
    ("family", "arguments", "name"),
    [
        (Graph.complete, (0,), "n"),
        (Graph.ring, (2,), "n"),
        (Graph.path, (1,), "n"),
        (Graph.star, (1,), "n"),
        (Graph.grid, (0, 3), "rows"),
        (Graph.grid, (3, 0), "columns"),
        (Graph, (0, ()), "n"),
    ],
)
def test_too_small(family, arguments, name):
    with pytest.raises(ParameterError, match=f"`{name}` must be at least"):
        family(*arguments)


@pytest.mark.parametrize("edges", [[(0, 1.7)], [(0, 1, 2)], [("a", "b")], [0, 1], [()], None])
def test_links_that_are_not_pairs_of_site_numbers_are_refused(edges):
    for make in (Graph.from_edges, lambda given: Graph(2, given)):
        with pytest.raises(GraphError, match="`edges` must be pairs of site numbers"):
            make(edges)


def test_a_seed_that_is_not_a_number_is_refused():
    for make in (lambda: Graph.erdos_renyi(5, 0.9, seed="x"), lambda: Graph.random_regular(4, 2, seed=None)):
        with pytest.raises(ParameterError, match="`seed` must be a whole number"):
            make()


def test_bad_probability_and_degree():
    for p in (0.0, -0.5, 1.5, float("nan")):
        with pytest.raises(ParameterError, match="`p` must be"):
            Graph.erdos_renyi(5, p, seed=0)
    with pytest.raises(ParameterError, match="`degree` must be at least 1"):
        Graph.random_regular(4, 0, seed=0)
    with pytest.raises(ParameterError, match="`n` must be a whole number; got float"):
        Graph.ring(5.0)
