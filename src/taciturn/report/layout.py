"""Where the sites of a network are drawn: points of the unit square, the same on every call."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np

from ..core.types import Array
from ..graph import Graph

_MANY = 60  # sites from which springs replace pairwise distances, whose cost grows with the cube
_DENSE = 5.0  # mean degree from which a circle is the clearest picture


def places(graph: Graph) -> list[tuple[float, float]]:
    """One point per site: a circle for rings and dense graphs, hub and spokes for a star, else springs."""
    hubs = np.flatnonzero(graph.degrees == graph.n - 1)
    if graph.n > 3 and len(graph.edges) == graph.n - 1 and len(hubs) == 1:
        points = _circle(graph.n - 1)
        points = np.insert(points, int(hubs[0]), 0.0, axis=0)
    elif bool((graph.degrees == 2).all()) or graph.degrees.mean() >= _DENSE or graph.n <= 3:
        points = _circle(graph.n)[np.argsort(_around(graph))]
    else:
        points = _springs(graph)
    low, span = points.min(axis=0), np.ptp(points, axis=0)
    scale = float(span.max()) or 1.0
    points = (points - low - span / 2) / scale + 0.5
    return [(round(float(x), 4), round(float(y), 4)) for x, y in points]


def _circle(n: int) -> Array:
    """n points from the top, clockwise."""
    angle = 2 * math.pi * np.arange(n) / n
    return np.column_stack([np.sin(angle), -np.cos(angle)])


def _around(graph: Graph) -> list[int]:
    """The sites in their order round a ring, whatever their numbers; 0..n-1 for other graphs."""
    if not bool((graph.degrees == 2).all()):
        return list(range(graph.n))
    return list(nx.dfs_preorder_nodes(graph.to_networkx(), 0))


def _springs(graph: Graph) -> Array:
    network: Any = graph.to_networkx()
    if graph.n <= _MANY:
        found = nx.kamada_kawai_layout(network, pos=nx.spectral_layout(network))
    else:
        found = nx.spring_layout(network, seed=0, iterations=100)
    points = np.array([found[i] for i in range(graph.n)])
    centred = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned: Array = centred @ axes.T  # the longest direction lies across the page
    return turned
