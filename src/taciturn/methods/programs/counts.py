"""Programs with one noisy sum: counts of rows in the cells of public tables, or the mean of q q' over rows q.

A unit is a record or a person. A record is in one cell of each table. Replacing a record changes at most two
cells of each table by one, so it moves the counts of k tables by at most sqrt(2 k). Each of the m rows of a
person has weight 1/m, rounded down to the grid, so replacing a person moves the counts by at most sqrt(2 k)
too. All weights are whole numbers of steps of the public grid, so the counts are not rounded again.

For rows q and p of norm at most 1, |q q' - p p'|^2 = |q|^4 + |p|^4 - 2 (q.p)^2 <= 2. So replacing a unit
moves the mean of q q' over n units by at most sqrt 2 / n, before rounding. taciturn computes q q' and rounds
the contribution of each unit once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ParameterError
from ...core.types import Array
from ...privacy.accounting.sensitivity import counts_sensitivity
from ...privacy.loss_facts import PROGRAM, LossFacts
from ...privacy.sums import ALIGNED, COUNTS, SumFacts
from ..base import UNSAID, Network, RunOptions
from ..sums.expressions import clip, columns, outer
from ..sums.prepared import PreparedSums
from ..sums.program import PrivateHalf, ProgramPart, PublicHalf, SumPlan, SumTables, fix_sums, pair_graph
from ..sums.several import Joinable
from ..sums.sums import Integers
from .own_program import Query, UnitRows, UnitVectors

Cells = NDArray[np.int32]


@dataclass(frozen=True)
class Counts(Joinable):
    """The method: one release of all tables within (epsilon, delta).

    lengths : the number of cells of each table.
    """

    lengths: tuple[int, ...]
    epsilon: float
    delta: float
    colluding: int | None = None

    def prepare(self, network: Network, rounds: int = 0, options: RunOptions = UNSAID) -> PreparedSums:
        """Set the grid and noise of the one sum."""
        if rounds not in (0, 1):
            raise ParameterError(f"`rounds` must be 1 for Counts, which has one release; got {rounds}.")
        total = sum(network.samples)
        pairs = pair_graph(network.total, self.colluding)
        plan = SumPlan(
            part=COUNTS,
            length=sum(self.lengths),
            sensitivity=counts_sensitivity(len(self.lengths)),
            stray=0.0,
            largest=total,
            share=1.0,
            whole=True,
        )
        sums = fix_sums([plan], epsilon=self.epsilon, delta=self.delta, pairs=pairs, colluding=self.colluding)
        program = CountsProgram(self.lengths)
        return PreparedSums(
            network, SumTables(sums, pairs, self.colluding, program, total, max(network.samples))
        )

    def part(self, network: Network) -> ProgramPart:
        """The sum as one of several questions in a job.

        A unit's vector of counts over k tables has norm sqrt k. Here the vector is divided by sqrt k.
        """
        units, scale = sum(network.samples), math.sqrt(len(self.lengths))
        plan = SumPlan(ALIGNED, sum(self.lengths), math.sqrt(2.0) / units, 0.0, 1.0, 1.0, whole=True)

        def half(sums: tuple[SumFacts, ...], sites: int) -> CountsProgram:
            steps = math.floor((1 - 2.0**-40) / (units * scale * sums[0].grid))
            return CountsProgram(self.lengths, steps, 1.0 / (steps * sums[0].grid))

        return ProgramPart((plan,), half)


@dataclass(frozen=True)
class CountState:
    """The state after t releases. counts : (repeats, cells), the counts of all tables; zeros at first."""

    t: int
    counts: Array


@dataclass(frozen=True)
class CountsProgram(PublicHalf):
    """The public half of the program, which sees no rows: it asks for one total, which gives the result.

    steps : the weight of a unit in grid steps; None if a unit has weight 1.
    scale : the factor that turns the total into counts.
    """

    lengths: tuple[int, ...]
    steps: int | None = None
    scale: float = 1.0

    @property
    def loss(self) -> LossFacts:
        return LossFacts(COUNTS, 1.0, 0.0)

    @property
    def dimension(self) -> int:
        """The number of tables, each of which counts every unit once."""
        return len(self.lengths)

    @property
    def size(self) -> int:
        """The number of cells in all tables."""
        return sum(self.lengths)

    def start(self, repeats: int) -> CountState:
        return CountState(0, np.zeros((repeats, sum(self.lengths))))

    def query(self, state: CountState) -> None:
        return None

    def advance(self, state: CountState, total: Array) -> CountState:
        return CountState(state.t + 1, total * self.scale)

    def result(self, state: CountState) -> Array:
        return state.counts

    def private_half(self, rows: SiteCells, units: int) -> SiteCells:
        return rows if self.steps is None else replace(rows, steps=self.steps)


@dataclass(frozen=True, eq=False)
class SiteCells(PrivateHalf):
    """The private half, which sees rows: the cells of one site's rows, (rows, tables).

    Cells are numbered across all tables.
    rows_of_person : for each row, the number of rows of the same person; None if every row is a unit.
    steps : the weight of a unit in grid steps; None if a unit has weight 1 (1 / grid steps).
    """

    cells: Cells
    rows_of_person: NDArray[np.int64] | None = None
    steps: int | None = None

    def take(self, chosen: NDArray[np.bool_]) -> SiteCells:
        """Some of the rows."""
        rows = self.rows_of_person
        return replace(self, cells=self.cells[chosen], rows_of_person=None if rows is None else rows[chosen])

    def integers(self, query: None, facts: SumFacts) -> Integers:
        """The counts in grid steps; a row has weight 1, or 1/m rounded down if its person has m rows."""
        one = round(1 / facts.grid) if self.steps is None else self.steps
        if self.rows_of_person is None:
            found = np.zeros(facts.length, dtype=np.int64)
            for column in self.cells.T:  # one at a time, because bincount copies what it counts
                found += np.bincount(column, minlength=facts.length)
            return (found * one)[None]
        counts = np.zeros(facts.length, dtype=np.int64)
        np.add.at(counts, self.cells, (one // self.rows_of_person)[:, None])
        return counts[None]


@dataclass(frozen=True)
class OuterProducts(Joinable):
    """The method: one release of the mean of q q' within (epsilon, delta). `width` is the length of q."""

    width: int
    epsilon: float
    delta: float
    colluding: int | None = None

    def part(self, network: Network) -> ProgramPart:
        """The sum, for a run of its own or as one of several questions in a job."""
        length, S = self.width * (self.width + 1) // 2, math.sqrt(2.0) / network.units
        plan = SumPlan(ALIGNED, length, S, 0.0, 1.0, 1.0, whole=True)
        return ProgramPart((plan,), lambda sums, sites: OuterProgram((length,)))


class OuterProgram(CountsProgram):
    """The public half of `OuterProducts`: it asks for one total, which is the result."""

    @property
    def loss(self) -> LossFacts:
        return LossFacts(PROGRAM, 1.0, 0.0)

    @property
    def dimension(self) -> int:
        return self.size

    def query(self, state: CountState) -> list[Query]:  # type: ignore[override]
        return [Query(outer(clip(columns(), 1.0)))] * len(state.counts)

    def private_half(self, rows: UnitRows, units: int) -> UnitVectors:  # type: ignore[override]
        return UnitVectors(rows, units, {1: 1.0})
