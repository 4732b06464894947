"""Rivals that use noisy gradients. Many settings and seeds run at once, because they share the rows.

The rivals are DP-SGD with gossip, huang2015, and DECOR [Allouah et al., ICML 2024]. In DECOR, pairs of
neighbours draw a part of the noise, which cancels in the sum. All use full batches. Small batches would be
worse: the noise would be the same, because no amplification by sampling is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit

import taciturn as tt
from taciturn.privacy.accounting import bounds
from taciturn.privacy.accounting.gaussian import gaussian_mu

from .tasks import Array, Hands


@dataclass(frozen=True, eq=False)
class Course:
    """One run: T steps, and T standard deviations of the gradients' noise. Gradients are clipped to `clip`.

    correlated : the standard deviation of the noise that one neighbour of each pair adds and the other
        subtracts, as a multiple of a site's own noise.
    """

    steps: Array
    noise: Array
    seed: int
    clip: float = 1.0
    correlated: float = 0.0


def gossip_weights(graph: tt.Graph) -> sparse.csr_array:
    """W: w_ij = 1 / (1 + max(V_i, V_j)) for neighbours, the rest on the diagonal (Metropolis).

    W is symmetric, its rows add up to 1, and a site needs only the degrees of its neighbours.
    """
    i, j = np.array(graph.edges, dtype=np.int64).T
    links = 1 / (1 + np.maximum(graph.degrees[i], graph.degrees[j]))
    W = sparse.csr_array((np.r_[links, links], (np.r_[i, j], np.r_[j, i])), shape=(graph.n, graph.n))
    stay = 1 - np.asarray(W.sum(axis=1)).ravel()
    return sparse.csr_array(W + sparse.diags_array(stay))


def descend(hands: Hands, graph: tt.Graph, courses: Sequence[Course]) -> list[Array]:
    """x_i <- sum_j W_ij u_j, u_j = x_j - step (gradient_j + noise_j); return the mean u_j of each round."""
    W, root = gossip_weights(graph).toarray(), _laplacian_root(graph)
    sites = [_Site(X, y) for X, y in hands]
    steps, noise = (np.stack([getattr(c, name) for c in courses]) for name in ("steps", "noise"))
    clips, ratios = np.array([c.clip for c in courses]), np.array([c.correlated for c in courses])
    draws = [np.random.default_rng(c.seed) for c in courses]
    x = np.zeros((len(sites), len(courses), hands[0][0].shape[1]))
    seen = np.empty((steps.shape[1], *x.shape[1:]))
    for t in range(steps.shape[1]):
        slope = np.stack([site.gradient(f, clips) for site, f in zip(sites, x, strict=True)])
        own = np.stack([draw.standard_normal((len(sites), x.shape[2])) for draw in draws], axis=1)
        if ratios.any():
            pairs = np.stack([draw.standard_normal((len(sites), x.shape[2])) for draw in draws], axis=1)
            own = own + ratios[:, None] * np.tensordot(root, pairs, axes=1)
        u = x - steps[:, t, None] * (slope + noise[:, t, None] * own)
        seen[t] = u.mean(axis=0)
        x = np.tensordot(W, u, axes=1)
    return [seen[:, k] for k in range(len(courses))]


class _Site:
    """The rows of one site, stored as sparse if most entries are zero, which is faster."""

    def __init__(self, X: Array, y: Array) -> None:
        lean = np.count_nonzero(X) < 0.3 * X.size
        self.Z = sparse.csr_array(X * y[:, None]) if lean else X * y[:, None]
        self.ZT = sparse.csr_array(self.Z.T) if lean else np.ascontiguousarray(self.Z.T)
        self.norms = np.maximum(np.linalg.norm(X, axis=1), 1e-12)[:, None]
        self.count = len(y)

    def gradient(self, f: Array, clips: Array) -> Array:
        """The mean of all records' gradients, each clipped to the norm in `clips`; (courses, d)."""
        slopes = np.minimum(expit(-(self.Z @ f.T)), clips / self.norms)
        return np.asarray(-(self.ZT @ slopes).T / self.count)


def _laplacian_root(graph: tt.Graph) -> Array:
    """R with R R' = L, where L is the covariance of the noise of all pairs of neighbours."""
    levels, vectors = np.linalg.eigh(laplacian(graph))
    return np.asarray(vectors * np.sqrt(np.maximum(levels, 0.0)))


def laplacian(graph: tt.Graph) -> Array:
    """Degrees on the diagonal, -1 for every edge."""
    L = np.diag(np.asarray(graph.degrees, dtype=np.float64))
    for i, j in graph.edges:
        L[i, j] = L[j, i] = -1.0
    return L


def even_noise(epsilon: float, delta: float, moved: float, shape: Array) -> Array:
    """The smallest sufficient multiple of `shape` if a record moves each gradient by `moved` (exact)."""
    mu = float(gaussian_mu(epsilon, delta))
    return np.asarray(shape * moved * np.sqrt(np.sum(shape**-2.0)) / mu)


def exposure(graph: tt.Graph, ratio: float) -> float:
    """The largest entry of (I + ratio^2 L_honest)^-1 if any one site is curious and knows its pair noise.

    The squared move by a record, divided by its site's own variance, is multiplied by this number. It is 1
    for independent noise, and 1 / (N - 1) if the pair noise is so large that only the honest sum is visible.
    """
    L, worst = laplacian(graph), 0.0
    for curious in range(graph.n):
        keep = np.delete(np.arange(graph.n), curious)
        honest = L[np.ix_(keep, keep)]
        honest = honest - np.diag(honest.sum(axis=1))  # without the edges to the curious site
        worst = max(worst, float(np.linalg.inv(np.eye(len(keep)) + ratio**2 * honest).diagonal().max()))
    return worst


def renyi_mu(epsilon: float, delta: float) -> float:
    """The largest mu whose Renyi curve q mu^2 / 2 converts to (epsilon, delta): the accounting of DECOR."""
    q, low, high = bounds.ORDERS, 1e-6, 1e3
    for _ in range(80):
        middle = (low * high) ** 0.5
        spent = float(bounds.to_epsilon(q, q * middle**2 / 2, delta)[0])
        low, high = (middle, high) if spent <= epsilon else (low, middle)
    return low
