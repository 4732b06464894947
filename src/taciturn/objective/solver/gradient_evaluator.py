"""Gradients of phi, the function that a site minimises in each round (the primal update of ADMM).

    phi(f) = O(f) + (curvature/2) ||f||^2 - <linear, f>
    grad phi(f) = sum_n weight L'(z_n) Z_n + rho R'(f) + curvature f - linear

O is the site's objective: the losses L(z_n) of the rows Z_n, and the regulariser rho R (see local.py).
`curvature` and `linear` come from the penalty, the other sites' models and the noise. A repeat is one of
several independent runs, each with its own noise. One pass over the rows serves all repeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.types import Array
from .rounding import a_priori_error

if TYPE_CHECKING:
    from ..local import Objective


class GradientEvaluator:
    """Gradients of phi at one model for each repeat. `count` is the number of passes over the site's rows."""

    def __init__(self, objective: Objective, curvature: float, linear: Array) -> None:
        self.objective = objective
        self.curvature = curvature
        self.linear = linear
        self.strong = objective.strong + curvature  # m, the strong convexity constant of phi
        self.blocks = objective.blocks(len(linear))
        self.count = 0
        rows = max(block.Z.shape[0] for block in self.blocks)
        self._z = np.empty((rows, len(linear)))
        self._product = np.empty((objective.dimension, len(linear)))
        self._slope = getattr(objective.loss, "slope_in_place", objective.loss.slope)

    def gradient(self, F: Array) -> Array:
        """The gradient of phi at every row of F, (repeats, d)."""
        self.count += 1
        with np.errstate(over="ignore"):
            data = self._data_gradient(np.ascontiguousarray(F.T))
        return self.with_smooth_terms(F, np.ascontiguousarray(data.T))

    def _data_gradient(self, Ft: Array) -> Array:
        """The loss's part of the gradient, sum_n weight L'(z_n) Z_n, (d, repeats)."""
        total = np.zeros_like(Ft)
        for block in self.blocks:
            if isinstance(block.Z, np.ndarray):
                z = np.matmul(block.Z, Ft, out=self._z[: block.Z.shape[0]])
            else:
                z = block.Z @ Ft
            if block.offset is not None:
                z += block.offset[:, None]
            slope = self._slope(z)
            if isinstance(block.Z, np.ndarray):
                product = np.matmul(block.ZT, slope, out=self._product)
            else:
                product = block.ZT @ slope
            product *= block.weight
            total += product
        return total

    def doubt(self, F: Array) -> Array:
        """An upper bound on the norm of the rounding error of `gradient(F)`, (repeats,)."""
        return a_priori_error(self.objective, self.blocks, self.curvature, self.linear, F)

    def with_smooth_terms(self, F: Array, data: Array) -> Array:
        """Add rho R'(f) + curvature f - linear in place to `data`, the gradient of the loss term."""
        data += self.objective.rho * self.objective.regularizer.gradient(F)
        data += self.curvature * F
        data -= self.linear
        return data

    def mean_weights(self, F: Array) -> list[Array]:
        """For every block, weight * L''(z_n) of each of its rows, averaged over the models."""
        self.count += 1
        Ft = np.ascontiguousarray(F.T)
        curvature, even = self.objective.loss.curvature, np.full(len(F), 1.0 / len(F))
        return [block.weight * (curvature(block.margins(Ft)) @ even) for block in self.blocks]

    def mean_diagonal(self, F: Array) -> Array:
        """rho R''(f) + curvature, averaged over the models, (d,)."""
        bend = self.objective.regularizer.curvature(F).mean(axis=0)
        return np.asarray(self.objective.rho * bend + self.curvature)
