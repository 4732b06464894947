"""Programs: a public half asks for sums over all records, one after the other, and a private half answers.

    public half     the sums, the next query and the state after each total: deterministic, without rows
    private half    what one site's rows add to a sum (its share), in whole steps of a public grid

Each step releases only the noisy total (`docs/privacy.md`). Programs compute models, tables of counts and
survival curves. `SumTables` contains the numbers of one run of a program. The budget of a run is mu, as in
Gaussian differential privacy (mu-GDP). The mu^2 of all sums add up, so each sum gets a fraction of mu^2.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.types import Array
from ...privacy.accounting.gaussian import gaussian_mu
from ...privacy.facts import RoundCharges
from ...privacy.loss_facts import PROGRAM, LossFacts
from ...privacy.sums import SumFacts
from .masks import Message
from .pairs import PairGraph
from .sums import Integers, check_room, checked_std, grid_for, open_sum

_ROOM = 1e-7  # the fraction of epsilon and delta that is reserved for discrete noise and for rounding errors


@dataclass(frozen=True)
class SumPlan:
    """One step of a program, before its noise is set.

    part : what is summed, as `SumFacts` names it.
    length : the number of entries of a message.
    sensitivity : how far one unit (a record or a person) moves the sum.
    stray : a bound on the floating-point error of what a site adds.
    largest : a public bound on every entry of the sum.
    share : the fraction of the squared budget, mu^2, that this sum spends.
    whole : whether the private half rounds each unit's vector to whole grid steps. The grid is then finer if
        the noise is smaller than the sensitivity.
    """

    part: str
    length: int
    sensitivity: float
    stray: float
    largest: float
    share: float
    whole: bool = False


class PrivateHalf(Protocol):
    """The private half computes one site's share of each sum. No other code of a program sees rows."""

    def integers(self, query: Any, facts: SumFacts) -> Integers:
        """This site's share in grid steps, (repeats, length); (1, length) if all repeats send one query."""
        ...

    def metrics(self, models: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of models (repeats, d) on the site's own rows, without noise.

        By default both are NaN, because a program that answers a question has no loss and no quality.
        """
        return np.full(len(models), np.nan), np.full(len(models), np.nan)


class PublicHalf(ABC):
    """The public half of a program. A state depends on totals alone; its `t` is the number of totals."""

    @property
    def loss(self) -> LossFacts:
        """The bounds on the summed vectors, for the accountant; by default, the bounds of clipped vectors."""
        return LossFacts(PROGRAM, 1.0, 0.0)

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The dimension of the sums, as `RunFacts` states it."""

    @property
    def size(self) -> int:
        """How many numbers the result has for each repeat."""
        return self.dimension

    @abstractmethod
    def start(self, repeats: int) -> Any:
        """The state before the first sum."""

    @abstractmethod
    def query(self, state: Any) -> Any:
        """The next query: public parameters for the private half."""

    @abstractmethod
    def advance(self, state: Any, total: Array) -> Any:
        """The state after one more total, (repeats, length)."""

    @abstractmethod
    def result(self, state: Any) -> Array:
        """The result, which is public, (repeats, size)."""

    @abstractmethod
    def private_half(self, rows: Any, units: int) -> PrivateHalf:
        """The private half of a site with these rows; all sites together have `units` records or persons."""


@dataclass(frozen=True)
class ProgramPart:
    """A program before its noise is set: its sums, and how its public half is made.

    plans : the sums of the program; their fractions of the squared budget add up to 1.
    half : a function; half(sums, sites) returns the public half. Here `sums` are the facts of the sums of
        this program, numbered 1, 2, ..., and `sites` is the number of sites.
    """

    plans: tuple[SumPlan, ...]
    half: Callable[[tuple[SumFacts, ...], int], Any]


@dataclass(frozen=True)
class SumTables:
    """The numbers of a run, fixed before its start: the sums, their noise, and the pairs that share masks.

    units : the number of records or persons at all sites.
    largest : a bound on the number of rows at one site.
    data_norm : the bound on the norm of a row.
    """

    sums: tuple[SumFacts, ...]
    pairs: PairGraph
    colluding: int | None
    program: Any
    units: int
    largest: int
    data_norm: float = 1.0

    @property
    def rounds(self) -> int:
        return len(self.sums)

    def charges(self, t: int, sites: NDArray[np.int64]) -> RoundCharges:
        """The charges (records of the cost) for what these sites release in round t."""
        std = np.full(len(sites), self.sums[t - 1].std)
        return RoundCharges(t, sites, np.zeros(len(sites)), std, None)

    def after(self, state: Any, total: Message) -> Any:
        """The state after a round whose messages add up to `total`: public, and the same at every site."""
        return self.program.advance(state, open_sum(total, self.sums[state.t].grid))


def pair_graph(sites: int, colluding: int | None, connectivity: int | None = None) -> PairGraph:
    """The pairs of sites that share masks, if up to `colluding` sites may collude.

    colluding : None means all sites but one.
    connectivity : the least number of partners of a site; by default it follows from `colluding`.
    """
    if connectivity is not None:
        return PairGraph(sites, connectivity)
    return PairGraph.against(sites - 1 if colluding is None else colluding, sites)


def fix_sums(
    plans: Sequence[SumPlan],
    *,
    epsilon: float,
    delta: float,
    pairs: PairGraph,
    colluding: int | None,
    places: int = 1,
) -> tuple[SumFacts, ...]:
    """The grid and noise of every sum, such that all sums together cost at most (epsilon, delta).

    `places` : the most sites at which one person may have rows. Each of these sites rounds separately.
    """
    mu = float(gaussian_mu(epsilon * (1 - _ROOM), delta * (1 - _ROOM)))
    return fix_noise(plans, mu=mu, pairs=pairs, colluding=colluding, places=places)


def fix_noise(
    plans: Sequence[SumPlan], *, mu: float, pairs: PairGraph, colluding: int | None, places: int = 1
) -> tuple[SumFacts, ...]:
    """The grid and noise of every sum, such that all sums together are mu-GDP."""
    honest = pairs.honest(pairs.sites - 1 if colluding is None else colluding)
    sizes = [mu * math.sqrt(plan.share) * math.sqrt(honest) for plan in plans]
    return tuple(
        _fix_sum(t, plan, size, pairs.sites, places)
        for t, (plan, size) in enumerate(zip(plans, sizes, strict=True), start=1)
    )


def _fix_sum(t: int, plan: SumPlan, size: float, sites: int, places: int) -> SumFacts:
    """The sum of round t, with noise such that sensitivity / standard deviation = `size`."""
    S = plan.sensitivity
    grid = grid_for(S / max(1.0, size) if plan.whole else S, plan.length)
    again = places * (2 * plan.stray / grid + math.sqrt(plan.length))
    std = checked_std((S / grid + again) / size * (1 + 1e-10))
    check_room(plan.largest, grid=grid, sites=sites, std=std)
    return SumFacts(t, plan.part, plan.length, S, plan.stray, grid, std)
