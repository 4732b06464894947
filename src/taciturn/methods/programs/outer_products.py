"""OuterProducts: a program of one sum, the mean of q q' over all units, for rows q of norm at most 1.

|q q' - p p'|^2 = |q|^4 + |p|^4 - 2 (q.p)^2 <= 2, so that replacing a unit moves the mean by sqrt 2 / n. The
framework forms the products itself, row by row, and rounds what a unit adds once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...privacy.loss_facts import PROGRAM, LossFacts
from ...privacy.sums import ALIGNED
from ..base import UNSAID, Network, RunOptions
from ..sums.expressions import clip, columns, outer
from ..sums.prepared import PreparedSums
from ..sums.program import ProgramPart, SumPlan
from ..sums.several import prepare_alone
from .counts import CountsProgram, CountState
from .own_program import Query, UnitRows, UnitVectors


@dataclass(frozen=True)
class OuterProducts:
    """The method: one release within (epsilon, delta). `width` is the length of q."""

    width: int
    epsilon: float
    delta: float
    colluding: int | None = None

    def prepare(self, network: Network, rounds: int = 0, options: RunOptions = UNSAID) -> PreparedSums:
        """Grid and noise of the one sum."""
        return prepare_alone(self, network, rounds, options)

    def part(self, network: Network) -> ProgramPart:
        """The same sum in a job with other questions."""
        length, S = self.width * (self.width + 1) // 2, math.sqrt(2.0) / network.units
        plan = SumPlan(ALIGNED, length, S, 0.0, 1.0, 1.0, whole=True)
        return ProgramPart((plan,), lambda sums, sites: OuterProgram((length,)))


class OuterProgram(CountsProgram):
    """The public half: one total, which is the result."""

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
