"""P ~ (Hessian)^-1: one matrix per site, weighted with the repeats' mean curvature, for all of them.

primal   (sum_n w_n Z_n Z_n' + D)^-1                           d x d, for d <= B and d not in the thousands
dual     D^-1 - D^-1 Z' W^1/2 (I + K)^-1 W^1/2 Z D^-1          B x B, for few rows (Woodbury)
diagonal 1 / (sum_n w_n Z_nj^2 + D_j)                          where neither matrix is small
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .passes import Passes

Array = NDArray[np.float64]

LARGEST_MATRIX = 1200  # rows of a matrix worth inverting
_DRIFT = 0.05  # relative change of the curvature term after which P is inverted again


class Preconditioner:
    """A site's P, kept between rounds. Build at some models; apply to the rows of V."""

    def __init__(self) -> None:
        self.built = False
        self.rebuilds = 0
        self._curvature = 0.0
        self._rest: Array = np.empty(0)
        self._gram: Array = np.empty(0)
        self._inverse: Array = np.empty(0)
        self._diagonal: Array = np.empty(0)
        self._root: Array = np.empty(0)  # W^1/2 where the dual form is used

    def build(self, passes: Passes, F: Array) -> None:
        """Take the weights at the models F."""
        weights = passes.mean_weights(F)
        rows, d = sum(len(w) for w in weights), F.shape[1]
        self._rest = passes.mean_diagonal(F) - passes.curvature
        self._root = np.empty(0)
        if d <= min(rows, LARGEST_MATRIX):
            self._gram = np.zeros((d, d))
            for block, w in zip(passes.blocks, weights, strict=True):
                self._gram += block.gram(w)
        elif rows <= LARGEST_MATRIX:
            self._root = np.sqrt(np.concatenate(weights))
        else:
            self._gram = np.zeros(d)
            for block, w in zip(passes.blocks, weights, strict=True):
                self._gram += block.squares(w)
        self._invert(passes)
        self.built = True
        self.rebuilds += 1

    def ready(self, passes: Passes, F: Array) -> None:
        """Build at the models F if there is none; invert again if the curvature term has drifted since."""
        if not self.built:
            self.build(passes, F)
        elif abs(passes.curvature - self._curvature) > _DRIFT * self._curvature:
            self._invert(passes)

    @property
    def size(self) -> int:
        """Floats held."""
        return self._gram.size + self._inverse.size + self._root.size + self._rest.size + self._diagonal.size

    def cost(self, passes: Passes) -> float:
        """What building costs, in passes over the rows: B d^2 against 4 B d repeats."""
        if self._inverse.ndim == 1:
            return float(LARGEST_MATRIX)  # a diagonal is not worth giving up the pairs for
        return 1.0 + passes.objective.dimension / (4.0 * len(passes.linear))

    def apply(self, passes: Passes, V: Array) -> Array:
        """P v for every row v of V."""
        if len(self._root):
            return self._apply_dual(passes, V)
        if self._inverse.ndim == 1:
            return np.asarray(V * self._inverse)
        return np.asarray(V @ self._inverse)

    def _apply_dual(self, passes: Passes, V: Array) -> Array:
        scaled = V / self._diagonal
        inner = np.concatenate([block.Z @ scaled.T for block in passes.blocks])
        inner = self._root[:, None] * (self._inverse @ (self._root[:, None] * inner))
        back, start = np.zeros((V.shape[1], len(V))), 0
        for block in passes.blocks:
            stop = start + block.Z.shape[0]
            back += block.ZT @ inner[start:stop]
            start = stop
        return np.asarray(scaled - back.T / self._diagonal)

    def _invert(self, passes: Passes) -> None:
        self._curvature = passes.curvature
        self._diagonal = self._rest + passes.curvature
        if len(self._root):
            self._inverse = positive_inverse(self._kernel(passes) + np.eye(len(self._root)))
        elif self._gram.ndim == 1:
            self._inverse = 1.0 / (self._gram + self._diagonal)
        else:
            self._inverse = positive_inverse(self._gram + np.diag(self._diagonal))

    def _kernel(self, passes: Passes) -> Array:
        """K = W^1/2 Z D^-1 Z' W^1/2."""
        pieces = [block.Z for block in passes.blocks]
        stacked = np.concatenate([Z if isinstance(Z, np.ndarray) else Z.toarray() for Z in pieces])
        stacked = self._root[:, None] * stacked / np.sqrt(self._diagonal)
        return np.asarray(stacked @ stacked.T)


def positive_inverse(A: Array) -> Array:
    """A^-1, positive definite like A; a little is added to the diagonal where floats need it."""
    eye, size = np.eye(len(A)), float(np.trace(A))
    for jitter in (0.0, 1e-15, 1e-13, 1e-11, 1e-9):
        try:
            root = np.linalg.inv(np.linalg.cholesky(A + (jitter * size) * eye))
        except np.linalg.LinAlgError:
            continue
        return np.asarray(root.T @ root)
    return np.diag(1.0 / np.diag(A))
