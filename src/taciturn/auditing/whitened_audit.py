"""The paper's method in whitened coordinates under audit: moments of the rows, then its rounds.

The observer is the site's only neighbour. It speaks last in the rounds of the moments, so it chooses their
totals, and with them the coordinates: it makes the totals 0, so that rows are long and clipped to norm 1.
"""

from __future__ import annotations

import os
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
from ..methods.sums.node import SumsNode
from ..methods.sums.prepared import process_keys
from ..methods.whitened_penalty import PreparedWhitened, whitened_objective
from ..objective.local import LocalObjective
from ..privacy.facts import RoundCharges, RunFacts
from ..privacy.ledger.memory import Ledger
from ..rng import Streams
from .cases import SITES, Case, gaussian_case
from .observer import Charging

_BATCH = 5_000  # runs at once


@dataclass(frozen=True, eq=False)
class WhitenedCase(Case):
    """A case whose method whitens; `rounds` counts those after the moments."""

    more: int = 4

    @cached_property
    def prepared(self) -> PreparedWhitened:
        """The run of both sites, each with so many records."""
        known: Any = {"total": SITES, "dimension": self.dimension, **self.problem}
        network = Network.without_rows([self.samples] * SITES, [1] * SITES, **known)
        options = RunOptions(tol=self.tol, strict=False)
        found = self.method.prepare(network, self.rounds + len(self.totals), options)
        if not isinstance(found, PreparedWhitened):
            raise ParameterError("`method` must whiten its rows to be attacked here; set `whiten`.")
        return found

    @property
    def totals(self) -> tuple[int, int]:
        """What the observer makes of every number of the two totals."""
        return 0, 0

    @cached_property
    def path(self) -> list[Any]:
        """The public state before each round of the moments, and after the last."""
        tables = self.prepared.moments.tables
        states = [tables.program.start(1)]
        for facts, value in zip(tables.sums, self.totals, strict=True):
            states.append(tables.after(states[-1], np.full((1, facts.length), value, dtype=np.uint64)))
        return states

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates to which the totals lead."""
        found: Coordinates = self.path[-1].coordinates[0]
        return found

    def raw(self, record: Sequence[float]) -> LocalObjective:
        """The rows of the site, with this record."""
        return super().objective(record)

    def objective(self, record: Sequence[float], label: float = 1.0) -> LocalObjective:
        """The objective of the site after the moments."""
        return whitened_objective(super().objective(record, label), self.coordinates)

    def run_facts(self) -> RunFacts:
        return self.prepared.part(range(1)).run_facts(simulated=True)


def later_rounds(
    case: Case, runs: int, streams: tuple[Streams, Streams], ledger: Ledger
) -> tuple[Charging, Array]:
    """How the case's rounds are charged, and ln p_old / p_new of what came before them, (2, runs)."""
    if not isinstance(case, WhitenedCase):
        return ledger.charge_round, np.zeros((2, runs))
    moments = case.prepared.moments.rounds

    def charge(charges: RoundCharges) -> None:
        ledger.charge_round(charges._replace(t=charges.t + moments))

    return charge, np.stack(moments_lean(case, runs, streams, ledger))


def moments_lean(
    case: WhitenedCase, runs: int, streams: tuple[Streams, Streams], ledger: Ledger
) -> tuple[Array, Array]:
    """ln p_old / p_new of the moments that site 0 releases, on the old data and on the new; charged once."""
    tables, old, new = case.prepared.moments.tables, case.old, case.new
    for t in range(1, tables.rounds + 1):
        ledger.charge_round(case.prepared.part(range(1)).charges(t))
    found = [np.zeros(runs), np.zeros(runs)]
    for facts, state in zip(tables.sums, case.path, strict=False):
        clean = [
            _share(case, record).integers(tables.program.query(state), facts)[0] for record in (old, new)
        ]
        first, second = (np.asarray(values, dtype=np.float64) for values in clean)
        for total, record, stream in zip(found, (old, new), streams, strict=True):
            for begin in range(0, runs, _BATCH):
                part = total[begin : begin + _BATCH]
                sent = _sent(case, record, state, len(part), stream)
                part += (sent - (first + second) / 2) @ (first - second) / facts.std**2
    return found[0], found[1]


def _sent(case: WhitenedCase, record: Sequence[float], state: Any, runs: int, stream: Streams) -> Array:
    """What the real node of site 0 sends in many runs, without the mask: the observer knows its key."""
    tables, root = case.prepared.moments.tables, os.urandom(32)
    keys = [process_keys(tables, root, site) for site in range(SITES)]
    for key in keys * state.t:
        key.advance()
    node = SumsNode(np.array([0]), [_share(case, record)], tables, keys[:1], stream, runs)
    facts = tables.sums[state.t]
    message: Message = node.message(state)[0]
    mask = keys[1].mask(facts.t, facts.part, (runs, facts.length))
    return np.asarray((message + mask).view(np.int64), dtype=np.float64)


def _share(case: WhitenedCase, record: Sequence[float]) -> Any:
    tables = case.prepared.moments.tables
    return tables.program.private_half(case.raw(record), tables.units)


def whitened_penalty_case(shift: float = 1.65, delta: float = 0.2) -> WhitenedCase:
    """Opposite records: the rounds tell nearly all, the moments are the same for both."""
    like = gaussian_case(shift=shift)
    return _whitened(like, "penalty, Gaussian, whitened", "opposite records, clipped rows", 0.1, delta=delta)


def moments_case(mu: float = 1.65, delta: float = 0.2) -> WhitenedCase:
    """Orthogonal records: the moments tell nearly all, the rounds hardly anything."""
    like, about = gaussian_case(shift=0.1), "orthogonal records, moments of the rows"
    records: Any = {"old": (1.0, 0.0), "new": (0.0, 1.0)}
    return _whitened(like, "penalty, moments of the rows", about, mu, delta=delta, **records)


def _whitened(like: Case, name: str, about: str, whiten: float, **changed: Any) -> WhitenedCase:
    """The same case with a method that whitens."""
    method = replace(like.method, whiten=whiten)  # type: ignore[type-var]
    entries = {key: value for key, value in vars(like).items() if key != "more"}
    return WhitenedCase(**(entries | {"name": name, "about": about, "method": method} | changed))
