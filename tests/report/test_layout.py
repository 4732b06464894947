"""Where the sites are drawn."""

import numpy as np
import pytest

from taciturn.graph import Graph
from taciturn.report.certificates import places

GRAPHS = [
    Graph.ring(5),
    Graph.from_edges([(0, 3), (3, 1), (1, 4), (4, 2), (2, 0)]),
    Graph.complete(7),
    Graph.path(2),
    Graph.path(6),
    Graph.star(9),
    Graph.star(12),
    Graph.star(20),
    Graph.grid(4, 5),
    Graph.random_regular(100, 6, seed=0),
    Graph.grid(8, 9),
]


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
def test_sites_lie_apart_in_the_unit_square_and_always_in_the_same_place(graph: Graph) -> None:
    points = np.array(places(graph))
    assert points.shape == (graph.n, 2)
    assert points.min() >= -1e-9 and points.max() <= 1 + 1e-9
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2) + 9 * np.eye(graph.n)
    assert gaps.min() > 0.3 / graph.n
    assert places(graph) == places(graph)


def test_links_of_a_ring_are_short_whatever_the_numbers() -> None:
    points = np.array(places(GRAPHS[1]))
    lengths = [np.linalg.norm(points[i] - points[j]) for i, j in GRAPHS[1].edges]
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-3)


def test_the_hub_of_a_star_is_in_the_middle() -> None:
    x, y = places(Graph.star(9))[0]
    assert abs(x - 0.5) < 0.05 and abs(y - 0.5) < 0.05


def test_a_grid_is_drawn_without_crossings() -> None:
    graph = Graph.grid(4, 5)
    points = np.array(places(graph))

    def left_of(a, b, c) -> bool:
        return (b[0] - a[0]) * (c[1] - a[1]) > (b[1] - a[1]) * (c[0] - a[0])

    for i, j in graph.edges:
        for k, m in graph.edges:
            if len({i, j, k, m}) == 4:
                a, b, c, d = points[[i, j, k, m]]
                assert not (left_of(a, b, c) != left_of(a, b, d) and left_of(c, d, a) != left_of(c, d, b))
