"""RunShape: a plan without the size of its noise; PlannedNetwork: the inputs of a plan.

The symbols are those of the paper: site i has B_i samples, V_i neighbours and the penalty eta_i(t) in round
t; C and rho are the weights of the loss and the regulariser. kappa_i(t) = 2 eta_i(t) V_i / C says how
strongly site i is pulled to its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from .calibration import EpsilonBudget

_SPARE = 0.02  # by default, rho = _SPARE N C kappa, with the smallest kappa_i(1) of the N sites
_GROUPS = 5  # the largest number of groups of sites in a forecast


@dataclass(frozen=True)
class RunShape:
    """A plan of penalty perturbation without the size of its noise.

    pull : the mean of kappa_i(1) over the sites.
    growth : the penalty grows by this factor each round: eta(t) = eta(1) growth^(t-1).
    tilt : the noise inside the penalty term is multiplied by this factor each round.
    balanced : True if eta_i V_i B_i is the same at every site; False if eta_i is the same at every site.
    """

    rounds: int
    pull: float
    growth: float
    tilt: float
    noise: str
    balanced: bool = False

    def relative(self) -> Array:
        """The noise of each round divided by the noise of the first round, (rounds,)."""
        return np.asarray(self.tilt ** np.arange(self.rounds))


class Groups(NamedTuple):
    """For each group of similar sites: a typical site, the number of sites, and their total weight."""

    site: NDArray[np.intp]
    size: Array
    weight: Array


@dataclass(frozen=True, eq=False)
class PlannedNetwork:
    """The inputs of a plan: samples B_i, degrees V_i, the budget, C, and rho (None if it was not given)."""

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
        """Whether B_i V_i differs so much between sites that one penalty cannot suit all of them."""
        size = self.samples * self.degrees
        return bool(size.max() > 2 * size.min())

    @cached_property
    def weights(self) -> Array:
        """The sites' weights in the released average: equal, or proportional to B_i if these vary much."""
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
        """rho as given; if it was not given, a rho that is negligible compared with the penalty."""
        return self.n * self.C * _SPARE * float(self.pulls(shape).min()) if self.rho is None else self.rho

    @cached_property
    def groups(self) -> Groups:
        """The sites in at most `_GROUPS` groups of similar cost; one group if all sites are alike."""
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
