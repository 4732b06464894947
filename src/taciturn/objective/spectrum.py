"""The largest eigenvalue of X'X, exactly for small problems and by Lanczos for large ones."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from ..core.types import Array
from .rows import Matrix

_SMALL = 400


def largest_eigenvalue(Z: Matrix) -> float:
    """lambda_max(Z'Z), rounded up by what the method may miss. Signs of rows do not matter."""
    samples, dimension = Z.shape
    if min(samples, dimension) <= _SMALL:
        product = Z.T @ Z if dimension <= samples else Z @ Z.T
        gram = product if isinstance(product, np.ndarray) else product.toarray()
        return max(0.0, float(np.linalg.eigvalsh(gram)[-1])) * (1 + 1e-12)

    def apply(v: Array) -> Array:
        return np.asarray(Z.T @ (Z @ v))

    operator = LinearOperator((dimension, dimension), matvec=apply, dtype=np.float64)
    start = np.full(dimension, 1.0) + 0.1 * np.cos(np.arange(dimension))  # fixed, so that runs repeat
    values, vectors = eigsh(operator, k=1, v0=start, tol=1e-10)
    top, v = float(values[0]), vectors[:, 0]
    return top + float(np.linalg.norm(apply(v) - top * v)) + 1e-9 * top
