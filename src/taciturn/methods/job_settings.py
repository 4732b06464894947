"""The method of a job, with the settings that all sites share (job.toml) and those of one site (site.toml).

A job is a run on which several sites have agreed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from ..core import checks
from ..core.errors import ParameterError
from .admm.perturbations import PenaltyPerturbation
from .admm.prepared import PreparedADMM
from .admm.real_runs import check_reach, least_tol
from .admm.theory import convergence
from .base import Network, RunOptions, SitesMethod
from .programs.masked_descent import MaskedDescent
from .sums.prepared import PreparedSums
from .sums.program import SumTables
from .whitened_penalty import PreparedWhitened, moments_of_rows

_MASKED_ROUNDS = 10**4  # the most rounds of a masked job, because all its noise is planned before round 1


class JobSettings(ABC):
    """The method of a job with its settings, checked.

    keys : the keys that job.toml must have for this method, and must not have for any other method.
    own : the keys of site.toml that belong to the method.
    quorum : whether a run may continue without sites that drop out.
    several : whether the method can learn more than two classes.
    scaled : whether a row, with the constant of the intercept as one more entry, must have norm at most 1.
    """

    keys: ClassVar[tuple[str, ...]]
    own: ClassVar[tuple[str, ...]] = ()
    quorum: ClassVar[bool] = False
    several: ClassVar[bool] = False
    scaled: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def of(cls, job: Any) -> Self:
        """The settings in a job. Raises `ParameterError` if they contradict each other."""

    @property
    @abstractmethod
    def sums(self) -> SumTables | None:
        """The plan of all sums over the sites; None if the run has no sums.

        Every site computes the same plan, from public facts alone.
        """

    @property
    @abstractmethod
    def longest(self) -> int:
        """The length of the longest message, in numbers. A site's first message (its hello) counts too."""

    @abstractmethod
    def prepare(self, number: int, own: Mapping[str, Any], *, real: bool) -> SitesMethod:
        """The prepared run of site `number`. `own` contains the settings in its site.toml.

        real : whether to refuse settings under which a message from a neighbour could make the solver fail.
        """

    def gaps(self, own: Mapping[str, Any]) -> list[str]:
        """The conditions of the theorems of [ZKL18] that a site's own schedules do not meet."""
        return []


@dataclass(frozen=True, eq=False)
class PenaltySettings(JobSettings):
    """The settings of penalty perturbation [ZKL18]. Each site chooses its own schedules."""

    network: Network
    rounds: int
    whiten: float | None
    dual_step: Any
    clip: float
    grid: float
    tol: float
    keys = ("dual_step", "clip", "grid", "tol")
    own = ("penalty", "noise", "output_noise")

    @classmethod
    def of(cls, job: Any) -> Self:
        made = cls(job.network, job.rounds, job.whiten, *(getattr(job, key) for key in cls.keys))
        if not (made.clip / made.grid).is_integer():
            raise ParameterError(
                f"`clip` must be a whole multiple of `grid` = {made.grid:g}; got {made.clip:g}"
            )
        if made.sums is not None and made.rounds <= made.sums.rounds:
            least = made.sums.rounds + 1
            raise ParameterError(f"`rounds` must be at least {least} with `whiten`; got {made.rounds}")
        return made

    @cached_property
    def sums(self) -> SumTables | None:
        """The plan of the moments that determine whitened coordinates (rows vary equally in them)."""
        return None if self.whiten is None else moments_of_rows(self.network, self.whiten)

    @property
    def longest(self) -> int:
        moments = () if self.sums is None else self.sums.sums
        return max(self.network.dimension, 20 * self.network.total) + sum(entry.length for entry in moments)

    def prepare(self, number: int, own: Mapping[str, Any], *, real: bool) -> PreparedADMM:
        network = self.network.part(range(number, number + 1))
        options = RunOptions(tol=self.tol, strict=False)
        prepared = self._method(own).prepare(network, self._rounds, options)
        if self.whiten is not None:
            prepared = PreparedWhitened.of(prepared, self.whiten, self.network)
        tables = prepared.tables
        columns = {"penalty": tables.eta, "noise": tables.scale, "output_noise": tables.output_scale}
        for name, values in columns.items():  # their squares and inverses must not overflow
            for value in () if values is None else (values.min(), values.max()):
                checks.magnitude(name, float(value))
        if real:
            least = least_tol(tables.site(0), network, 0, self.clip)
            check_reach(self.tol, least, clip=self.clip, where=network.names[0])
        return replace(prepared, refresh=1)

    def gaps(self, own: Mapping[str, Any]) -> list[str]:
        nondecreasing, above, *_ = convergence(self._method(own), 1, self._rounds).hypotheses
        return [f"{gap.name}: {gap.detail}" for gap in (nondecreasing, above) if not gap.holds]

    @property
    def _rounds(self) -> int:
        """The number of rounds without the first rounds, which release moments of the rows."""
        return self.rounds - (0 if self.sums is None else self.sums.rounds)

    def _method(self, own: Mapping[str, Any]) -> PenaltyPerturbation:
        return PenaltyPerturbation(**own, dual_step=self.dual_step, grid=self.grid, clip=self.clip)


@dataclass(frozen=True, eq=False)
class MaskedSettings(JobSettings):
    """The settings of gradient descent on sums over all sites; masks hide what each site adds to a sum.

    All numbers of the run follow from job.toml.
    """

    prepared: PreparedSums
    keys = ("epsilon",)
    quorum = several = scaled = True

    @classmethod
    def of(cls, job: Any) -> Self:
        if job.rounds > _MASKED_ROUNDS:
            raise ParameterError(
                f"`rounds` must be at most {_MASKED_ROUNDS} with method 'masked'; got {job.rounds}"
            )
        constant = None if job.ball is None else job.ball.constant
        method = MaskedDescent(job.epsilon, job.delta, job.colluding, constant)
        loss, network = job.training_loss, job.network
        size = network.dimension * getattr(loss, "classes", 1)
        return cls(method.prepare(replace(network, loss=loss, dimension=size), job.rounds))

    @property
    def sums(self) -> SumTables:
        return self.prepared.tables

    @property
    def longest(self) -> int:
        return max(20 * self.prepared.network.total, *(entry.length for entry in self.sums.sums))

    def prepare(self, number: int, own: Mapping[str, Any], *, real: bool) -> PreparedSums:
        return self.prepared.part(range(number, number + 1))


SETTINGS: dict[str, type[JobSettings]] = {"penalty": PenaltySettings, "masked": MaskedSettings}
"""The settings class of each method, by the name of the method in a job."""
