"""Solve a hard problem by continuation: first smooth the loss strongly, then reduce the smoothing in stages.

The Moreau envelope of a convex loss, e(z) = min_v L(v) + (z - v)^2 / (2 tau), has the slope L'(v) and the
curvature L''(v) / (1 + tau L''(v)) <= 1/tau, where v is the solution of v + tau L'(v) = z. With a large tau
the minimised function phi (see gradient_evaluator.py) is nearly as well conditioned as its quadratic terms.
As tau -> 0, e becomes L. Each stage starts at the solution of the previous stage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.types import Array
from ..local import Objective
from ..losses import Kind, Loss
from .gradient_evaluator import GradientEvaluator
from .newton import newton

_SHRINK = 0.2  # tau is multiplied by this factor after each stage
_SOFT = 0.1  # once tau c1 is at most this (c1 = sup L''), the loss itself is used, without smoothing
_STEPS = 40  # the largest number of Newton steps in a stage
_ENOUGH = 0.1  # a stage ends when the norm of the gradient is at most this times the norm at its start


@dataclass(frozen=True)
class SoftenedLoss:
    """The Moreau envelope of a loss."""

    loss: Loss
    tau: float

    @property
    def name(self) -> str:
        return f"softened {self.loss.name}"

    @property
    def kind(self) -> Kind:
        return self.loss.kind

    @property
    def slope_bound(self) -> float:
        return self.loss.slope_bound

    @property
    def curvature_bound(self) -> float:
        """c1 / (1 + tau c1)."""
        return self.loss.curvature_bound / (1.0 + self.tau * self.loss.curvature_bound)

    def value(self, z: Array) -> Array:
        v = self.nearest(z)
        return np.asarray(self.loss.value(v) + np.square(z - v) / (2.0 * self.tau))

    def slope(self, z: Array) -> Array:
        return np.asarray((z - self.nearest(z)) / self.tau)

    def curvature(self, z: Array) -> Array:
        bend = self.loss.curvature(self.nearest(z))
        return np.asarray(bend / (1.0 + self.tau * bend))

    def nearest(self, z: Array) -> Array:
        """The v with v + tau L'(v) = z, found by Newton's method, safeguarded by bisection."""
        reach = self.tau * self.slope_bound
        low, high, v = z - reach, z + reach, z
        for _ in range(100):
            off = v + self.tau * self.loss.slope(v) - z
            low, high = np.where(off <= 0.0, v, low), np.where(off > 0.0, v, high)
            step = v - off / (1.0 + self.tau * self.loss.curvature(v))
            moved = np.where((step > low) & (step < high), step, 0.5 * (low + high))
            settled = np.abs(moved - v) <= 1e-13 * (np.abs(z) + reach)
            v = moved
            if np.all(settled):
                break
        return v


def solve_by_stages(phi: GradientEvaluator, target: float) -> Array:
    """A model f, (1, d), with ||grad phi(f)|| <= target if rounding permits. The first stage starts at 0."""
    objective, f = phi.objective, np.zeros_like(phi.linear)
    bend = sum(part.weight * part.rows.samples * part.rows.norm**2 for part in objective.parts)
    tau = bend / phi.strong
    while tau * objective.loss.curvature_bound > _SOFT:
        eased = Objective(
            objective.parts,
            loss=SoftenedLoss(objective.loss, tau),
            rho=objective.rho,
            regularizer=objective.regularizer,
        )
        stage = GradientEvaluator(eased, phi.curvature, phi.linear)
        first = float(np.linalg.norm(stage.gradient(f)))
        f = newton(stage, f, max(_ENOUGH * first, target), steps=_STEPS)
        phi.count += stage.count
        tau *= _SHRINK
    return newton(phi, f, target)
