"""Run several programs one after the other in one run, with one (epsilon, delta) and one certificate.

A program asks for sums over all records (`program.py`): its private half sees the rows of one site, and its
public half only the totals of its own sums. Each program has a share of the squared budget mu^2. Vectors in a
sum have norm at most 1. Aligned vectors (with inner products >= 0) need less noise (`privacy/sums.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import ParameterError
from ...core.types import Array
from ...privacy.sums import SumFacts
from ..base import UNSAID, Network, RunOptions
from .prepared import PreparedSums
from .program import PrivateHalf, ProgramPart, PublicHalf, SumTables, fix_sums, pair_graph
from .sums import Integers


class Joinable(ABC):
    """A method that may be part of `Several`, or run alone. It sums vectors of norm at most 1."""

    epsilon: float
    delta: float
    colluding: int | None

    @abstractmethod
    def part(self, network: Network) -> ProgramPart:
        """The program before its noise is set."""

    def prepare(self, network: Network, rounds: int = 0, options: RunOptions = UNSAID) -> PreparedSums:
        """The run of this method alone; `rounds` must be the number of its sums, or 0."""
        alone = Several((self,), (1.0,), self.epsilon, self.delta, self.colluding)
        prepared = alone.prepare(network, rounds, options)
        (program,) = prepared.tables.program.programs
        return replace(prepared, tables=replace(prepared.tables, program=program))


@dataclass(frozen=True)
class Several:
    """The method that runs several programs, which together cost at most (epsilon, delta).

    shares : for each program, its part of mu^2; only the ratios of the shares matter.
    """

    methods: tuple[Joinable, ...]
    shares: tuple[float, ...]
    epsilon: float
    delta: float
    colluding: int | None = None

    def prepare(self, network: Network, rounds: int = 0, options: RunOptions = UNSAID) -> PreparedSums:
        """Set grid and noise of every sum; `rounds` must be the number of sums of all programs, or 0."""
        parts = [method.part(network) for method in self.methods]
        whole = sum(self.shares)
        plans = [
            replace(plan, share=plan.share * share / whole)
            for part, share in zip(parts, self.shares, strict=True)
            for plan in part.plans
        ]
        if rounds not in (0, len(plans)):
            raise ParameterError(f"`rounds` must be {len(plans)}, the number of sums; got {rounds}.")
        pairs = pair_graph(network.total, self.colluding)
        sums = fix_sums(plans, epsilon=self.epsilon, delta=self.delta, pairs=pairs, colluding=self.colluding)
        halves, ends = [], np.cumsum([len(part.plans) for part in parts]).tolist()
        for part, first, end in zip(parts, [0, *ends], ends, strict=False):
            own = [replace(entry, t=t) for t, entry in enumerate(sums[first:end], start=1)]
            halves.append(part.half(tuple(own), network.total))
        program = SeveralHalf(tuple(halves), tuple(ends), sum(plan.length for plan in plans))
        tables = SumTables(sums, pairs, self.colluding, program, network.units, max(network.samples))
        return PreparedSums(network, tables)


class SeveralState(NamedTuple):
    """The state of each program, and the number of sums so far."""

    t: int
    inner: tuple[Any, ...]


class SeveralQuery(NamedTuple):
    """The number of the program that asks, the number of its own step, and its query."""

    program: int
    t: int
    query: Any


@dataclass(frozen=True)
class SeveralHalf(PublicHalf):
    """The public half, which runs one program after the other. `ends` has the last round of each program."""

    programs: tuple[Any, ...]
    ends: tuple[int, ...]
    numbers: int

    @property
    def dimension(self) -> int:
        """The total length of all sums."""
        return self.numbers

    @property
    def size(self) -> int:
        return sum(program.size for program in self.programs)

    def start(self, repeats: int) -> SeveralState:
        return SeveralState(0, tuple(program.start(repeats) for program in self.programs))

    def _turn(self, t: int) -> int:
        """The number of the program to which round t + 1 belongs."""
        return next(k for k, end in enumerate(self.ends) if t < end)

    def query(self, state: SeveralState) -> SeveralQuery:
        k = self._turn(state.t)
        return SeveralQuery(k, state.inner[k].t + 1, self.programs[k].query(state.inner[k]))

    def advance(self, state: SeveralState, total: Array) -> SeveralState:
        k = self._turn(state.t)
        inner = list(state.inner)
        inner[k] = self.programs[k].advance(inner[k], total)
        return SeveralState(state.t + 1, tuple(inner))

    def result(self, state: SeveralState) -> Array:
        pairs = zip(self.programs, state.inner, strict=True)
        return np.concatenate([program.result(inner) for program, inner in pairs], axis=1)

    def split(self, result: Array) -> list[Array]:
        """The result of each program, from the joint result of all programs, (..., size)."""
        return np.split(result, np.cumsum([program.size for program in self.programs])[:-1], axis=-1)

    def private_half(self, rows: Sequence[Any], units: int) -> SeveralRows:
        pairs = zip(self.programs, rows, strict=True)
        return SeveralRows(tuple(program.private_half(own, units) for program, own in pairs))


@dataclass(frozen=True, eq=False)
class SeveralRows(PrivateHalf):
    """The private half, which passes each query to the private half of the program that asks."""

    halves: tuple[PrivateHalf, ...]

    def integers(self, query: SeveralQuery, facts: SumFacts) -> Integers:
        return self.halves[query.program].integers(query.query, replace(facts, t=query.t))
