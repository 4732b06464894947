"""The sums of a regression under audit: a colluder leads the real program to where one record shows most.

A linear regression on one column, all sixteen sums. The colluder chooses every total, and so the coordinates
and the cut of residuals; the model stays at 0. Both records then lie at the bound b of a row, with residuals
at their cuts, +1 and -1, at an angle whose cosine is c:

    score      moves by b sqrt(2 + 2c) of 2 b sqrt(1.12): the most at c = 1
    matrices   move by sqrt(2 - 2c^2) of sqrt 2: the most at c = 0

No pair of records is the worst for both. The largest that any c shows is 0.85 of the certified mu.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..core.types import Array
from ..graph import Graph
from ..methods.base import Network
from ..methods.programs.glm.regression import HESSIAN, MEAT, MOMENTS, OUTCOME, Regression
from ..methods.programs.own_program import OwnProgram, ProgramTable, UnitRows
from ..methods.sums.masks import Message
from ..methods.sums.prepared import PreparedSums
from ..methods.sums.program import SumTables
from .masked_audit import SumsCase

_Y = 0.999  # the outcome of the record: its residual is just inside the cut


@dataclass(frozen=True, kw_only=True)
class RegressionCase(SumsCase):
    """Three uneven sites' regression.

    cosine : between both records, in the coordinates that the colluder brings about.
    """

    samples: tuple[int, ...] = (200, 900, 400)
    rounds: int = 16
    cosine: float = 0.37
    epsilon: float = 2.0
    delta: float = 0.2
    colluding: int = 1

    def prepared(self) -> PreparedSums:
        rows = [UnitRows(np.zeros((1, 3))) for _ in self.samples]
        network = Network.of(ProgramTable(rows, np.array(self.samples), 3), Graph.complete(len(self.samples)))
        method = OwnProgram(Regression("gaussian", 2, 1), self.epsilon, self.delta, self.colluding, columns=3)
        return method.prepare(network)

    def rows(self, site: int, record: float) -> UnitRows:
        """All rows but the record cannot be read."""
        X = np.full((1, 3), np.nan)
        if site == 0:
            X[0] = record / math.sqrt(2.0), 1.0 / math.sqrt(2.0), record * _Y
        return UnitRows(X)

    def total(self, tables: SumTables, t: int, runs: int) -> Message:
        step, facts = tables.program.plan[t - 1], tables.sums[t - 1]
        values = self._wanted(step.name.split()[0], t, facts.length) / step.bound
        whole = np.rint(values / facts.grid).astype(np.int64)
        return np.tile(whole, (runs, 1)).view(np.uint64)

    def _wanted(self, kind: str, t: int, length: int) -> Array:
        """Moments that stretch the axes by the cosine, residuals that all lie at their cut, and no score."""
        values = np.zeros(length)
        if kind == OUTCOME:
            values[[12, 27]] = 0.5  # a spread of 0.375: residuals are cut at 1
        elif kind == MOMENTS:
            first = [1.0 / (3.125 * (1.0 - self.cosine)), 0.0, 1.0 / (3.125 * (1.0 + self.cosine))]
            values[:] = first if t == 1 else [0.32, 0.0, 0.3201]  # later: as they are
        elif kind not in (HESSIAN, MEAT):
            values[-3:] = 0.2
        return values


def regression_case() -> RegressionCase:
    """All sums of one regression, where one pair of records shows most."""
    return RegressionCase(
        name="regression, one colluder",
        about="opposite residuals, all sixteen sums, three uneven sites, a colluder who chooses every total",
    )
