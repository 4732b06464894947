"""The preconditioner P ~ (Hessian of phi)^-1; gradient_evaluator.py defines phi and its `curvature`.

A site has one P for all repeats, based on the mean of their second derivatives. P has one of three forms:

    Primal    (G + D)^-1, G = Z' W Z                            d x d
    Dual      D^-1 - D^-1 Z' W^1/2 (I + K)^-1 W^1/2 Z D^-1      rows x rows, K = W^1/2 Z D^-1 Z' W^1/2
    Diagonal  (diag G + D)^-1                                   if both matrices would be too large

D = rho R'' + curvature is diagonal. W is diagonal too; its entry for row n is weight L''(z_n). A matrix is
stored only if it has at most as many entries as the site's rows, so it needs no more memory than the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dtrtri

from ...core.types import Array

if TYPE_CHECKING:
    from .gradient_evaluator import GradientEvaluator


LARGEST_MATRIX = 1200  # a matrix is inverted only if it has at most this many rows
_DRIFT = 0.05  # after this relative change of the curvature term, P is updated, with the same W
_FAR = 3.0  # after this relative change of the curvature term, P is built with a new W


@dataclass(frozen=True, eq=False)
class Primal:
    """P = (G + D)^-1, stored as a matrix."""

    inverse: Array
    curvature: float

    def apply(self, phi: GradientEvaluator, V: Array) -> Array:
        return np.asarray(V @ self.inverse)

    def following(self, phi: GradientEvaluator) -> Primal:
        """P with the same W, for the `curvature` of phi in this round."""
        moved = positive_inverse(self.inverse)
        moved[np.diag_indices_from(moved)] += phi.curvature - self.curvature
        return Primal(positive_inverse(moved), phi.curvature)


@dataclass(frozen=True, eq=False)
class Dual:
    """P by Woodbury's identity, from a matrix with one row and column for each row of the data."""

    inverse: Array  # (I + K)^-1
    root: Array  # the diagonal of W^1/2
    rest: Array  # D without the curvature term
    curvature: float

    def apply(self, phi: GradientEvaluator, V: Array) -> Array:
        diagonal = self.rest + self.curvature
        scaled = V / diagonal
        inner = np.concatenate([block.Z @ scaled.T for block in phi.blocks])
        inner = self.root[:, None] * (self.inverse @ (self.root[:, None] * inner))
        back, start = np.zeros((V.shape[1], len(V))), 0
        for block in phi.blocks:
            stop = start + block.Z.shape[0]
            back += block.ZT @ inner[start:stop]
            start = stop
        return np.asarray(scaled - back.T / diagonal)

    def following(self, phi: GradientEvaluator) -> Dual:
        """P with the same W, for the `curvature` of phi in this round."""
        return _dual(phi, self.root, self.rest)


@dataclass(frozen=True, eq=False)
class Diagonal:
    """P = (diag G + D)^-1, stored as a vector."""

    squares: Array  # diag G + D without the curvature term
    curvature: float

    def apply(self, phi: GradientEvaluator, V: Array) -> Array:
        return np.asarray(V / (self.squares + self.curvature))

    def following(self, phi: GradientEvaluator) -> Diagonal:
        """P with the same W, for the `curvature` of phi in this round."""
        return replace(self, curvature=phi.curvature)


class Preconditioner:
    """A site's P, kept between rounds. `build` computes P at some models; `apply` returns P v."""

    def __init__(self) -> None:
        self.form: Primal | Dual | Diagonal | None = None
        self.rebuilds = 0

    def build(self, phi: GradientEvaluator, F: Array) -> None:
        """Build P from the curvatures at the models F."""
        weights = phi.mean_weights(F)
        diagonal = phi.mean_diagonal(F)
        pairs = list(zip(phi.blocks, weights, strict=True))
        rows, d = sum(len(w) for w in weights), F.shape[1]
        entries = sum(block.Z.size for block in phi.blocks)  # of a sparse Z: the stored entries
        if d <= min(rows, LARGEST_MATRIX) and d * d <= entries:
            H = np.diag(diagonal)
            for block, w in pairs:
                H += block.gram(w)
            self.form = Primal(positive_inverse(H), phi.curvature)
        elif rows <= LARGEST_MATRIX and rows * rows <= entries:
            self.form = _dual(phi, np.sqrt(np.concatenate(weights)), diagonal - phi.curvature)
        else:
            squares = sum((block.squares(w) for block, w in pairs), diagonal - phi.curvature)
            self.form = Diagonal(np.asarray(squares), phi.curvature)
        self.rebuilds += 1

    def ready(self, phi: GradientEvaluator, F: Array) -> None:
        """Build P at the models F if there is no P, or if phi's curvature differs much from P's.

        If it differs a little, update P. Otherwise keep P.
        """
        if self.form is None:
            self.build(phi, F)
            return
        drift = abs(phi.curvature - self.form.curvature)
        if drift > _FAR * min(phi.curvature, self.form.curvature):
            self.build(phi, F)
        elif drift > _DRIFT * self.form.curvature:
            self.form = self.form.following(phi)

    def cost(self, phi: GradientEvaluator) -> float:
        """The cost of building P, in passes over the rows: 1 for W, and d / (4 repeats) for Z' W Z."""
        if isinstance(self.form, Diagonal):
            return float(LARGEST_MATRIX)  # so high that P is kept: L-BFGS pairs are worth more than a new P
        return 1.0 + phi.objective.dimension / (4.0 * len(phi.linear))

    def apply(self, phi: GradientEvaluator, V: Array) -> Array:
        """P v for every row v of V."""
        return V if self.form is None else self.form.apply(phi, V)


def _dual(phi: GradientEvaluator, root: Array, rest: Array) -> Dual:
    """Compute K for the curvature term of `phi`, and invert I + K."""
    scale = 1.0 / (rest + phi.curvature)
    kernel = np.eye(len(root))
    start = 0
    for left in phi.blocks:
        stop = start + left.Z.shape[0]
        kernel[start:stop] += root[start:stop, None] * left.products(phi.blocks, scale) * root
        start = stop
    return Dual(positive_inverse(kernel), root, rest, phi.curvature)


def positive_inverse(A: Array) -> Array:
    """A^-1 for a positive definite A. If Cholesky fails, a larger diagonal is used, or else only diag A."""
    eye, size = np.eye(len(A)), float(np.trace(A))
    for jitter in (0.0, 1e-15, 1e-13, 1e-11, 1e-9):
        try:
            root = np.linalg.cholesky(A + (jitter * size) * eye)
        except np.linalg.LinAlgError:
            continue
        inverse, singular = dtrtri(root.T)
        if not singular:
            return np.asarray(inverse @ inverse.T)
    return np.diag(1.0 / np.diag(A))
