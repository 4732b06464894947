"""A budget over several runs: each run has one price, and the sum of the prices may not exceed a limit.

The choice of the next run may depend on the results of earlier runs. Then a bound that is chosen afterwards,
such as the best of many Renyi orders, is not valid. Three bounds, called accountants, are valid
(docs/privacy.md, 18):

    gaussian    sum mu^2                          at most the mu^2 of (epsilon, delta)
    renyi       sum of Renyi costs at one order   at most the cost at that order that gives (epsilon, delta)
    pure        sum of pure epsilons              at most epsilon, for delta = 0

In each run, noise that is drawn in floats is inexact with a small probability (`costs.float_delta`). With
delta = 0, a budget cannot pay for this error: the sum of these probabilities, at most 1e-9, is the
probability that the guarantee fails. Budgets with delta > 0 reserve a small part of epsilon and delta for the
additional cost of discrete noise and of floats.
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
from .masked_sums import CALM, MARGIN, Slack, masked_epsilon, stretch
from .rounding import down, floats, up

ACCOUNTANTS = ("gaussian", "renyi", "pure")
BUDGET_ORDERS: Array = np.asarray(ORDERS[::4])
"""The orders at which the Renyi cost of a run is stored: 10% apart in the range of usual budgets."""
_RESERVE = 1e-3  # this part of epsilon is reserved for discrete noise, and this part of delta for floats
_RARE = 1e-9  # this part of delta is reserved for noise vectors longer than `discrete_slack` assumes
_SAFE = 1 - 1e-9  # `left` is rounded down by this factor, so that a run that costs exactly `left` is admitted
_LINEAR = 1e-3  # up to this epsilon, `pure_mu` is bounded by a line
_PURE_FLOATS = 1e-9  # with delta = 0: the largest allowed sum of `RunCost.floats` over the runs


@dataclass(frozen=True)
class RunCost:
    """The cost of one run for any one record by every accountant; infinite if an accountant has no bound.

    renyi : the Renyi cost at each of `BUDGET_ORDERS`.
    alone : epsilon at the budget's delta if this is the only run.
    slack, failure : what discrete noise adds to epsilon and to delta.
    floats : what sampling in floats adds to delta.
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
    """The limit (epsilon, delta) on all runs together. The accountant is fixed before the second run."""

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
        """The index of the budget's Renyi order: the order at which the least Gaussian noise is enough."""
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
        """The price of a run; the prices of several runs are added."""
        if self.accountant == "pure":
            return cost.pure
        return float(up(cost.mu**2)) if self.accountant == "gaussian" else cost.renyi[self.place]

    def total(self, costs: Sequence[RunCost]) -> float:
        """The price of all runs together, in the same unit as `most`."""
        return float(up(math.fsum(map(self.price, costs)))) if costs else 0.0

    def admits(self, costs: Sequence[RunCost]) -> bool:
        """Whether these runs stay within the budget; the last of them has not started yet.

        The first run may use the whole budget: it cannot depend on earlier results, so the epsilon of its own
        certificate counts.
        """
        if len(costs) == 1 and costs[0].alone <= self.epsilon:
            return self.accountant != "pure" or self._reserve_holds(costs)
        return self.total(costs) <= self.most and self._reserve_holds(costs)

    def left(self, costs: Sequence[RunCost], runs: int = 1) -> float:
        """The largest epsilon, at the budget's delta, that each of `runs` further runs may have.

        costs : the costs of the runs so far. The further runs are assumed to have Gaussian noise, or norm
            noise if delta = 0.
        """
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
        """(epsilon, delta) minus the reserve for discrete noise and floats."""
        kept = _RESERVE * self.epsilon
        delta = self.delta * (1 - _RESERVE) * math.exp(-min(kept, 700.0)) * (1 - 2 * _RARE)
        return self.epsilon - kept, delta

    def _room(self) -> Array:
        """For each order, the largest Renyi cost within (epsilon, delta); negative if even 0 exceeds it."""
        epsilon, delta = self._inner()
        q, r = BUDGET_ORDERS, BUDGET_ORDERS - 1
        first, second = np.log1p(-1 / q), -(np.log(delta) + np.log(q)) / r
        return np.asarray(epsilon * _SAFE - first - second - 1e-13 * (np.abs(first) + np.abs(second)))

    def _reserve_holds(self, costs: Sequence[RunCost]) -> bool:
        """Whether the additional cost of discrete noise and floats stays within the reserve."""
        floats_lost = math.fsum(cost.floats for cost in costs)
        if self.accountant == "pure":
            return floats_lost <= _PURE_FLOATS
        slack = float(stretch(self.epsilon)) * math.fsum(cost.slack for cost in costs)
        lost = floats_lost <= _RESERVE * self.delta * _SAFE
        failure = math.fsum(cost.failure for cost in costs)
        rare = failure * math.exp(min(self.epsilon, CALM)) <= _RARE * self.delta * _SAFE
        return slack <= _RESERVE * self.epsilon * _SAFE and lost and rare


def composed_epsilon(costs: Sequence[RunCost], delta: float) -> float:
    """epsilon of these runs together: the smallest that the Gaussian, Renyi and pure accountants prove.

    This epsilon holds for runs that were fixed in advance. If the choice of a run depended on earlier
    results, only the epsilon of the whole budget holds.
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
    """2 Phi^-1(e^eps / (1 + e^eps)): the least mu such that every release of pure epsilon eps is mu-GDP.

    mu-GDP is defined in `gaussian.py`.
    The trade-off curve of pure epsilon consists of two straight lines that meet at (a, a), a = 1/(1 + e^eps).
    The Gaussian trade-off curve is convex and has the same ends. If it passes through or below the point
    (a, a), it is below both lines.
    """
    epsilon = floats(epsilon)
    with np.errstate(invalid="ignore"):
        exact = -2 * special.ndtri(special.expit(-epsilon)) * (1 + 1e-11)
    steep = math.sqrt(math.pi / 2) * (1 + 1e-12)  # the slope of mu(epsilon) at 0, its largest slope
    return up(np.where(epsilon < _LINEAR, steep * epsilon, exact))


def _renyi_epsilon(renyi: Array, delta: float, slack: Slack) -> float:
    """epsilon of runs whose Renyi costs, without the slack, add up to `renyi`."""

    def plain(slack: float) -> float:
        inner = delta * math.exp(-min(slack, 700.0)) * (1 - 2 * _RARE)
        return float(to_epsilon(BUDGET_ORDERS, up(renyi), inner)[0])

    most = plain(slack.epsilon) + 2 * slack.epsilon + MARGIN
    if not math.isfinite(most) or math.exp(min(most, CALM)) * slack.failure > _RARE * delta * _SAFE:
        return math.inf
    more = float(stretch(most)) * slack.epsilon
    found = float(up(plain(more) + more))
    return found if found <= most else math.inf
