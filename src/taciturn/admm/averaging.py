"""Released vectors, averaged: over sites, over rounds, or by gossip along the links. It costs no privacy.

Whatever is computed from broadcasts alone reveals nothing that they did not (post-processing). Mixing in a
vector that was not released would.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..errors import ParameterError
from ..graph import Graph
from ..types import Array


def network_average(released: Array, weights: ArrayLike | None = None) -> Array:
    """sum_i w_i f_i / sum_i w_i: (..., sites, d) -> (..., d); every site counts alike by default.

    Without weights the vectors are added in the order of the sites, without a matrix product, so that every
    machine gets the same bits.
    """
    if weights is None:
        return np.asarray(released.mean(axis=-2))
    return np.asarray(np.tensordot(released, _shares(weights, released.shape[-2]), axes=([-2], [0])))


def gossip_weights(graph: Graph) -> sparse.csr_array:
    """W: w_ij = 1 / (1 + max(V_i, V_j)) for neighbours, the rest on the diagonal (Metropolis).

    Symmetric, with rows that add up to 1, and known to a site from its own neighbours' degrees alone.
    """
    i, j = np.array(graph.edges, dtype=np.int64).T
    links = 1 / (1 + np.maximum(graph.degrees[i], graph.degrees[j]))
    W = sparse.csr_array((np.r_[links, links], (np.r_[i, j], np.r_[j, i])), shape=(graph.n, graph.n))
    stay = 1 - np.asarray(W.sum(axis=1)).ravel()
    return sparse.csr_array(W + sparse.diags_array(stay))


def gossip(released: Array, graph: Graph, steps: int, weights: ArrayLike | None = None) -> Array:
    """W^steps f: what each site holds after so many exchanges with its neighbours, (..., sites, d).

    With `weights` each site carries w_i f_i and w_i along and takes their ratio, so that all approach
    `network_average` with the same weights.
    """
    sites = released.shape[-2]
    if sites != graph.n:
        raise ParameterError(f"`released` must hold one vector per site, {graph.n}; got {sites}.")
    shares = _shares(weights, sites)
    flat = np.moveaxis(released, -2, 0).reshape(sites, -1) * shares[:, None]
    both, W = np.column_stack([flat, shares]), gossip_weights(graph)
    for _ in range(steps):
        both = W @ both
    mixed = both[:, :-1] / both[:, -1:]
    lead = (*released.shape[:-2], released.shape[-1])
    return np.moveaxis(mixed.reshape(sites, *lead), 0, -2)


def gossip_steps(graph: Graph, tol: float = 1e-3) -> int:
    """Exchanges after which the sites' differences have shrunk by `tol`: ln tol / ln |second eigenvalue|."""
    size = np.sort(np.abs(np.linalg.eigvalsh(gossip_weights(graph).toarray())))
    second = float(size[-2])
    return 1 if second < 1e-12 else math.ceil(math.log(tol) / math.log(second))


def _shares(weights: ArrayLike | None, sites: int) -> Array:
    """Weights that add up to 1."""
    if weights is None:
        return np.full(sites, 1 / sites)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (sites,) or not np.all(np.isfinite(w) & (w >= 0)) or w.sum() <= 0:
        raise ParameterError(f"`weights` must be {sites} numbers of at least 0, not all 0.")
    return np.asarray(w / w.sum())
