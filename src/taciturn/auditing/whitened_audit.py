"""An audit of the paper's method in whitened coordinates: rounds that release moments, then ADMM rounds.

The observer is the site's only neighbour. It sends last in the rounds that release moments of the rows, so it
chooses the totals and thereby the coordinates. It makes the totals 0, so that whitened rows are long and are
clipped to norm 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core.errors import ParameterError
from ..core.types import Array
from ..methods.base import Network, RunOptions
from ..methods.programs.coordinates import Coordinates
from ..methods.sums.masks import Message
from ..methods.sums.prepared import PreparedSums
from ..methods.sums.program import SumTables
from ..methods.whitened_penalty import PreparedWhitened, whitened_objective
from ..objective.local import LocalObjective
from ..privacy.facts import RoundCharges, RunFacts
from ..privacy.ledger.memory import Ledger
from ..rng import Streams
from .cases import SITES, Case, gaussian_case
from .masked_audit import SumsCase, masked_scores
from .observer import Charging

_MOMENTS = 2  # the number of rounds that release moments


@dataclass(frozen=True, eq=False)
class WhitenedCase(Case):
    """A case whose method whitens the rows; `rounds` does not count the rounds that release moments."""

    more: int = 4

    @cached_property
    def prepared(self) -> PreparedWhitened:
        """The run of both sites, with `samples` records each."""
        known: Any = {"total": SITES, "dimension": self.dimension, **self.problem}
        network = Network.without_rows([self.samples] * SITES, [1] * SITES, **known)
        options = RunOptions(tol=self.tol, strict=False)
        found = self.method.prepare(network, self.rounds + _MOMENTS, options)
        if not isinstance(found, PreparedWhitened):
            raise ParameterError("`method` of a WhitenedCase must whiten its rows; set `whiten`.")
        return found

    @cached_property
    def coordinates(self) -> Coordinates:
        """The coordinates that all sites compute from the totals."""
        tables = self.prepared.moments.tables
        state = tables.program.start(1)
        for facts in tables.sums:
            state = tables.after(state, np.zeros((1, facts.length), dtype=np.uint64))
        found: Coordinates = state.coordinates[0]
        return found

    def raw(self, record: Sequence[float]) -> LocalObjective:
        """The objective of the site with this record, before the rows are whitened."""
        return super().objective(record)

    def objective(self, record: Sequence[float], label: float = 1.0) -> LocalObjective:
        """The objective of the site with this record, in whitened coordinates."""
        return whitened_objective(super().objective(record, label), self.coordinates)

    def run_facts(self) -> RunFacts:
        return self.prepared.part(range(1)).run_facts(simulated=True)


def later_rounds(
    case: Case, runs: int, streams: tuple[Streams, Streams], ledger: Ledger
) -> tuple[Charging, Array]:
    """(charge, ratio) for the ADMM rounds of a case.

    charge : the function that charges these rounds to the ledger.
    ratio : ln p_old / p_new of the moments that were released before these rounds, (2, runs).
    """
    if not isinstance(case, WhitenedCase):
        return ledger.charge_round, np.zeros((2, runs))

    def charge(charges: RoundCharges) -> None:
        ledger.charge_round(charges._replace(t=charges.t + _MOMENTS))

    return charge, np.stack(moments_lean(case, runs, streams, ledger))


@dataclass(frozen=True, kw_only=True)
class MomentsCase(SumsCase):
    """The moments of a whitened case as masked sums of two sites, one of which is the observer."""

    whitened: WhitenedCase

    def prepared(self) -> PreparedSums:
        return self.whitened.prepared.moments

    def rows(self, site: int, record: float) -> LocalObjective:
        """The rows of site 0. The rows of the observer are never needed."""
        return self.whitened.raw(self.whitened.old if record == self.old else self.whitened.new)

    def total(self, tables: SumTables, t: int, runs: int) -> Message:
        return np.zeros((runs, tables.sums[t - 1].length), dtype=np.uint64)


def moments_lean(
    case: WhitenedCase, runs: int, streams: tuple[Streams, Streams], ledger: Ledger
) -> tuple[Array, Array]:
    """ln p_old / p_new of the moments that site 0 releases, for runs on the old data and on the new data.

    The moments are charged once.
    """
    for t in range(1, _MOMENTS + 1):
        ledger.charge_round(case.prepared.part(range(1)).charges(t))
    about: Any = {"name": case.name, "about": case.about, "rounds": _MOMENTS}
    moments = MomentsCase(whitened=case, samples=(case.samples,) * SITES, **about)
    return masked_scores(moments, runs, streams)["honest sums"]


def whitened_penalty_case(shift: float = 1.65, delta: float = 0.2) -> WhitenedCase:
    """Opposite records have the same moments, so only the ADMM rounds reveal which record was used."""
    like = gaussian_case(shift=shift)
    return _whitened(like, "penalty, Gaussian, whitened", "opposite records, clipped rows", 0.1, delta=delta)


def moments_case(mu: float = 1.65, delta: float = 0.2) -> WhitenedCase:
    """Orthogonal records: the moments reveal nearly everything, the ADMM rounds hardly anything."""
    like, about = gaussian_case(shift=0.1), "orthogonal records, moments of the rows"
    records: Any = {"old": (1.0, 0.0), "new": (0.0, 1.0)}
    return _whitened(like, "penalty, moments of the rows", about, mu, delta=delta, **records)


def _whitened(like: Case, name: str, about: str, whiten: float, **changed: Any) -> WhitenedCase:
    """The case `like`, with a method that whitens."""
    method = replace(like.method, whiten=whiten)  # type: ignore[type-var]
    entries = {key: value for key, value in vars(like).items() if key != "more"}
    return WhitenedCase(**(entries | {"name": name, "about": about, "method": method} | changed))
