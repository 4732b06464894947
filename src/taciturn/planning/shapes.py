"""Shapes of a private run: everything that a plan chooses except the size of its noise, and the network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from .calibration import EpsilonBudget

_SPARE = 0.02  # rho/N as a share of the smallest kappa(1), where the regulariser is the planner's to choose
_GROUPS = 5


@dataclass(frozen=True)
class RunShape:
    """Everything that a plan chooses except the size of its noise.

    pull : kappa(1) = 2 eta(1) V / C on average over the sites.
    growth : eta(t) = eta(1) growth^(t-1).
    tilt : the noise of round t is tilt^(t-1) times that of round 1, in units of the penalty.
    balanced : eta_i V_i B_i is the same at every site, instead of eta_i.
    """

    rounds: int
    pull: float
    growth: float
    tilt: float
    noise: str
    balanced: bool = False

    def relative(self) -> Array:
        """The noise's shape over the rounds, (rounds,)."""
        return np.asarray(self.tilt ** np.arange(self.rounds))


class Groups(NamedTuple):
    """Groups of similar sites: one representative of each, its size, and its share of the average."""

    site: NDArray[np.intp]
    size: Array
    weight: Array


@dataclass(frozen=True, eq=False)
class PlannedNetwork:
    """The inputs of a plan: B_i, V_i, the budget, the weight of the loss, and rho (None: free)."""

    samples: NDArray[np.int64]
    degrees: NDArray[np.int64]
    budget: EpsilonBudget
    C: float
    rho: float | None

    @property
    def n(self) -> int:
        return len(self.samples)

    @property
    def uneven(self) -> bool:
        """Whether the sites differ so much that one penalty cannot suit them all."""
        size = self.samples * self.degrees
        return bool(size.max() > 2 * size.min())

    @cached_property
    def weights(self) -> Array:
        """The weights of the sites in the released average: equal, or by rows if these differ much."""
        uneven = self.samples.max() > 2 * self.samples.min()
        return self.samples / self.samples.sum() if uneven else np.full(self.n, 1 / self.n)

    def pulls(self, shape: RunShape) -> Array:
        """kappa_i(1) = 2 eta_i(1) V_i / C, (sites,)."""
        spread = 1 / self.samples if shape.balanced else self.degrees
        return np.asarray(shape.pull * spread / np.mean(spread))

    def penalties(self, shape: RunShape) -> Array:
        """eta_i(1), (sites,)."""
        return self.C * self.pulls(shape) / (2 * self.degrees)

    def regularization(self, shape: RunShape) -> float:
        """rho: as given, or negligible beside the penalty."""
        return self.n * self.C * _SPARE * float(self.pulls(shape).min()) if self.rho is None else self.rho

    @cached_property
    def groups(self) -> Groups:
        """A few groups of sites, from the most expensive to the cheapest; one group if all are alike."""
        price = 1 / (self.samples * np.array(self.budget.epsilon))
        kind = np.unique(np.column_stack([price, self.degrees]), axis=0, return_inverse=True)[1].reshape(-1)
        order = np.lexsort((np.arange(self.n), kind))
        cuts = np.flatnonzero(np.diff(kind[order])) + 1
        if len(cuts) >= _GROUPS:
            cuts = np.linspace(0, self.n, _GROUPS + 1).astype(np.intp)[1:-1]
        parts = np.split(order, cuts)
        return Groups(
            np.array([part[len(part) // 2] for part in parts]),
            np.array([float(len(part)) for part in parts]),
            np.array([float(self.weights[part].sum()) for part in parts]),
        )
