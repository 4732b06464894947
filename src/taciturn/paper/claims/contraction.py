"""Theorem 2 against a run: ||Z(t-1) - Z*||^2_J(t) / ||Z(t) - Z*||^2_J(t), at least 1 + delta(t)."""

from __future__ import annotations

import numpy as np

from ...core.errors import ParameterError
from ...core.types import Array
from ..figures.runner import CurveResult


def contractions(outcome: CurveResult) -> Array:
    """One ratio for each of the rounds 2 .. T of the first repeat; equal penalties and one dual step only.

    Z stacks Y and f, with 2 Lambda = sqrt(D - A) Y; ||Z||^2_J = ||Y||^2 / theta + <f, eta (D + A) f>.
    """
    graph, history = outcome.graph, outcome.run.history
    tables = outcome.method.tables(graph.n, outcome.run.loss.shape[1])
    alike = (tables.eta == tables.eta[0]).all() and (tables.theta == tables.theta[0, 0]).all()
    if history is None or not alike:
        raise ParameterError("`outcome` must have a history, equal penalties and one dual step.")
    eta, theta, f = tables.eta[0], float(tables.theta[0, 0]), history[:, 0]
    D, A = np.diag(graph.degrees.astype(float)), graph.adjacency
    root = _root(D - A)
    gradients = [outcome.problem.site(i).gradient(outcome.optimum[None])[0] for i in range(graph.n)]
    Y_star = -np.linalg.pinv(root) @ np.stack(gradients)
    Y = theta * np.cumsum(root @ f, axis=0)

    def squared_distance(t: int, s: int) -> float:
        """||Z(s) - Z*||^2 in the norm of round t, both counted from 0."""
        gap = f[s] - outcome.optimum
        return float(np.sum((Y[s] - Y_star) ** 2) / theta + np.sum(gap * (eta[t] * (D + A) @ gap)))

    return np.array([squared_distance(t, t - 1) / squared_distance(t, t) for t in range(1, len(f))])


def _root(laplacian: Array) -> Array:
    """The symmetric square root; the one eigenvalue that is 0 stays 0."""
    values, vectors = np.linalg.eigh(laplacian)
    values[0] = 0.0
    return np.asarray(vectors @ np.diag(np.sqrt(values)) @ vectors.T)
