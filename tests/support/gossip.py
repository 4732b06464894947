"""Gossip along the links, with which a pinned result was mixed."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from taciturn import Graph


def gossip(released: np.ndarray, graph: Graph, steps: int, weights: list[float]) -> np.ndarray:
    """What each site holds after so many exchanges of (w_i f_i, w_i) with its neighbours, (..., sites, d).

    Metropolis weights: 1 / (1 + max(V_i, V_j)) for neighbours, and the rest stays.
    """
    i, j = np.array(graph.edges).T
    links, n = 1 / (1 + np.maximum(graph.degrees[i], graph.degrees[j])), graph.n
    W = sparse.csr_array((np.r_[links, links], (np.r_[i, j], np.r_[j, i])), shape=(n, n))
    W = sparse.csr_array(W + sparse.diags_array(1 - np.asarray(W.sum(axis=1)).ravel()))
    shares = np.asarray(weights, dtype=np.float64) / sum(weights)
    both = np.column_stack([np.moveaxis(released, -2, 0).reshape(n, -1) * shares[:, None], shares])
    for _ in range(steps):
        both = W @ both
    mixed = (both[:, :-1] / both[:, -1:]).reshape(n, *released.shape[:-2], released.shape[-1])
    return np.moveaxis(mixed, 0, -2)
