"""A budget over several runs: one number of each run adds up, and the sum may not pass one number.

Which run comes next may depend on what the ones before it showed. A bound that is chosen afterwards, such as
the best of many Renyi orders, does not hold then; these do, whatever the runs react to (docs/privacy.md, 18):

    gaussian    sum mu^2                          at most the mu^2 of (epsilon, delta)
    renyi       sum of Renyi costs at one order   at most what that order turns into (epsilon, delta)
    pure        sum of pure epsilons              at most epsilon, for delta = 0

Drawing noise in floats leaves a chance of some 1e-14 for each run, which a budget with delta = 0 cannot pay:
it holds except for the sum of these probabilities, at most 1e-9. Of other budgets a small part of epsilon and
delta is kept back for what discrete noise and sampling in floats add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from ...core import checks
from ...core.errors import ParameterError
from ...core.types import Array
from .bounds import ORDERS, to_epsilon
from .gaussian import gaussian_epsilon, gaussian_mu
from .masked_sums import Slack, masked_epsilon
from .rounding import down, floats, up

ACCOUNTANTS = ("gaussian", "renyi", "pure")
BUDGET_ORDERS: Array = np.asarray(ORDERS[::4])
"""The orders at which the Renyi cost of a run is kept: 10% apart where budgets usually are."""
_RESERVE = 1e-3  # of epsilon for the slack of discrete noise, and of delta for floats
_RARE = 1e-9  # of delta, for noise longer than the slack allows
_SAFE = 1 - 1e-9  # the stated rest is admitted, whatever the last bits are
_LINEAR = 1e-3
_PURE_FLOATS = 1e-9  # the chance that a budget with delta = 0 may leave to floats, over all its runs


@dataclass(frozen=True)
class RunCost:
    """The cost of one run to any one record, by every accountant; infinite if one has no bound.

    renyi : at each of `BUDGET_ORDERS`.
    alone : epsilon at the budget's delta if this is the only run there ever is.
    slack, failure, floats : what discrete noise adds to epsilon, and it and floats to delta.
    """

    mu: float
    renyi: tuple[float, ...]
    pure: float
    alone: float
    slack: float = 0.0
    failure: float = 0.0
    floats: float = 0.0


@dataclass(frozen=True)
class Limit:
    """(epsilon, delta) for all runs together, watched by one accountant that was fixed before the second."""

    accountant: str
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        checks.choice("accountant", self.accountant, ACCOUNTANTS)
        checks.positive("epsilon", self.epsilon)
        if self.accountant == "pure":
            if self.delta != 0:
                raise ParameterError(f"`delta` must be 0 for a pure budget; got {self.delta:g}.")
        else:
            checks.probability("delta", self.delta)

    @cached_property
    def place(self) -> int:
        """Which of the orders is watched: the one at which Gaussian noise may be the smallest."""
        return int(np.argmax(self._room() / BUDGET_ORDERS))

    @cached_property
    def most(self) -> float:
        """The limit on the sum of `price`."""
        if self.accountant == "pure":
            return self.epsilon
        if self.accountant == "gaussian":
            return float(down(gaussian_mu(*self._inner())) ** 2)
        return float(self._room()[self.place])

    def price(self, cost: RunCost) -> float:
        """The one number of a run that adds up."""
        if self.accountant == "pure":
            return cost.pure
        return float(up(cost.mu**2)) if self.accountant == "gaussian" else cost.renyi[self.place]

    def total(self, costs: Sequence[RunCost]) -> float:
        """All runs together, in the same unit as `most`."""
        return float(up(math.fsum(map(self.price, costs)))) if costs else 0.0

    def admits(self, costs: Sequence[RunCost]) -> bool:
        """Whether these runs, the last of which is yet to come, stay within the budget.

        The first run may use all of it, as its own certificate counts: nothing was seen before it.
        """
        if len(costs) == 1 and costs[0].alone <= self.epsilon:
            return self.accountant != "pure" or self._reserve_holds(costs)
        return self.total(costs) <= self.most and self._reserve_holds(costs)

    def left(self, costs: Sequence[RunCost], runs: int = 1) -> float:
        """The largest epsilon, at the budget's delta, that each of so many more Gaussian runs may have."""
        runs = checks.whole("runs", runs, least=1)
        if not costs and runs == 1:
            return self.epsilon
        room = (self.most - self.total(costs)) / runs * _SAFE
        if not (room > 0 and self._reserve_holds(costs)):
            return 0.0
        if self.accountant == "pure":
            return float(down(room))
        square = room if self.accountant == "gaussian" else 2 * room / BUDGET_ORDERS[self.place]
        return float(gaussian_epsilon(down(math.sqrt(square)), self.delta)) * _SAFE

    def _inner(self) -> tuple[float, float]:
        """(epsilon, delta) without the reserve."""
        kept = _RESERVE * self.epsilon
        delta = self.delta * (1 - _RESERVE) * math.exp(-min(kept, 700.0)) * (1 - 2 * _RARE)
        return self.epsilon - kept, delta

    def _room(self) -> Array:
        """The Renyi cost that (epsilon, delta) leaves at each order; below 0 where it leaves nothing."""
        epsilon, delta = self._inner()
        q, r = BUDGET_ORDERS, BUDGET_ORDERS - 1
        first, second = np.log1p(-1 / q), -(np.log(delta) + np.log(q)) / r
        return np.asarray(epsilon * _SAFE - first - second - 1e-13 * (np.abs(first) + np.abs(second)))

    def _reserve_holds(self, costs: Sequence[RunCost]) -> bool:
        """Whether discrete noise and floats stay within their reserve."""
        floats_lost = math.fsum(cost.floats for cost in costs)
        if self.accountant == "pure":
            return floats_lost <= _PURE_FLOATS
        slack = math.fsum(cost.slack for cost in costs) <= _RESERVE * self.epsilon * _SAFE
        lost = floats_lost <= _RESERVE * self.delta * _SAFE
        failure = math.fsum(cost.failure for cost in costs)
        return slack and lost and failure * math.exp(min(self.epsilon, 700.0)) <= _RARE * self.delta


def composed_epsilon(costs: Sequence[RunCost], delta: float) -> float:
    """epsilon of these runs together by the accountant that finds the least: Gaussian, Renyi or pure.

    True of runs that were fixed beforehand. Of runs that react to each other the budget itself is true.
    """
    if not costs:
        return 0.0
    found = [float(up(math.fsum(cost.pure for cost in costs)))]
    if len(costs) == 1:
        found.append(costs[0].alone)
    usable = delta - math.fsum(cost.floats for cost in costs) * (1 + 1e-9)
    if delta > 0 and usable > 0:
        slack = Slack(
            math.fsum(cost.slack for cost in costs) * (1 + 1e-12), math.fsum(cost.failure for cost in costs)
        )
        mu = math.sqrt(math.fsum(cost.mu**2 for cost in costs))
        found.append(float(masked_epsilon(up(mu), usable, slack)))
        found.append(_renyi_epsilon(np.sum([cost.renyi for cost in costs], axis=0), usable, slack))
    return min(found)


def pure_mu(epsilon: Array) -> Array:
    """The least mu such that every pure epsilon-private release is mu-GDP: 2 Phi^-1(e^eps / (1 + e^eps)).

    Of the two trade-off curves that of epsilon is two straight lines which meet at (a, a), a = 1/(1 + e^eps);
    the Gaussian one is convex, goes through the same ends, and is below both lines if it is below that point.
    """
    epsilon = floats(epsilon)
    with np.errstate(invalid="ignore"):
        exact = -2 * special.ndtri(special.expit(-epsilon)) * (1 + 1e-11)
    steep = math.sqrt(math.pi / 2) * (1 + 1e-12)  # its slope at 0, from where on it bends down
    return up(np.where(epsilon < _LINEAR, steep * epsilon, exact))


def _renyi_epsilon(renyi: Array, delta: float, slack: Slack) -> float:
    """epsilon of runs whose Renyi costs, but for the slack, add up to these."""
    inner = delta * math.exp(-min(slack.epsilon, 700.0)) * (1 - 2 * _RARE)
    plain = float(to_epsilon(BUDGET_ORDERS, up(renyi), inner)[0])
    lost = math.exp(min(plain + slack.epsilon, 700.0)) * slack.failure
    return float(up(plain + slack.epsilon)) if lost <= _RARE * delta else math.inf
