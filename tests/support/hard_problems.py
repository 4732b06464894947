"""Problems that are hard for solvers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from taciturn.objective import LocalObjective, LogCosh, Logistic, Loss, SmoothHinge

LOSSES = (Logistic(), SmoothHinge(0.5), SmoothHinge(0.02), LogCosh(1.0), LogCosh(0.05))


@dataclass(frozen=True)
class Recipe:
    """What a hard problem is made of; `seed` draws the rest."""

    rows: int = 60
    dimension: int = 8
    rank: int = 8
    loss: Loss = LOSSES[0]
    share: float = 0.2  # C / B
    penalty: float = 0.5
    rho: float = 10**-2.5
    norm: float = 1.0
    separable: bool = False
    csr: bool = False
    zero_rows: bool = False
    repeats: int = 3
    seed: int = 0

    @property
    def curvature(self) -> float:
        """2 eta V with V = 2."""
        return 4.0 * self.penalty

    def make(self) -> tuple[LocalObjective, np.ndarray, np.ndarray]:
        """(objective, linear, start)."""
        rng = np.random.default_rng(self.seed)
        X = rng.normal(size=(self.rows, self.rank)) @ rng.normal(size=(self.rank, self.dimension))
        X *= self.norm / np.linalg.norm(X, axis=1, keepdims=True)
        if self.csr:
            X *= rng.random(X.shape) < 0.3
        if self.zero_rows:
            X[:: max(2, self.rows // 5)] = 0.0
        truth = rng.normal(size=self.dimension) / self.norm
        y = X @ truth if self.separable else rng.normal(size=self.rows)
        if self.loss.kind == "classification":
            y = np.where(y >= 0, 1.0, -1.0)
        objective = LocalObjective(
            sparse.csr_array(X) if self.csr else X,
            y,
            loss=self.loss,
            C=max(self.share * self.rows, 1e-3),
            regularization=self.rho,
            sites=5,
        )
        centre, noise = rng.normal(size=(2, self.repeats, self.dimension)) / self.norm
        return objective, self.curvature * (centre + noise), centre


def recipes(*, rows, dimension, rank, repeats, penalty, norm=(1.0,)):
    """Recipes up to these sizes, of every loss, separable or not, dense or sparse, some with empty rows."""
    return st.builds(
        Recipe,
        rows=st.integers(1, rows),
        dimension=st.integers(1, dimension),
        rank=st.integers(1, rank),
        loss=st.sampled_from(LOSSES),
        share=st.sampled_from([0.01, 0.2, 1.0]),
        penalty=st.sampled_from(penalty),
        norm=st.sampled_from(norm),
        separable=st.booleans(),
        csr=st.booleans(),
        zero_rows=st.booleans(),
        repeats=st.integers(1, repeats),
        seed=st.integers(0, 2**32 - 1),
    )
