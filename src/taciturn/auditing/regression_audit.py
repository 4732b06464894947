"""An audit of all sixteen sums of a linear regression on one column.

A colluding site chooses every total so that one record has the largest effect on the real program. The totals
determine the coordinates and the bound at which residuals are clipped; the model stays at 0. Both records
then have the largest norm b of a row, residuals +1 and -1 at the clipping bound, and an angle with cosine c.
Replacing one record by the other moves the sums:

    score      moves by b sqrt(2 + 2c), certified: 2 b sqrt(1.12); it moves most at c = 1
    matrices   move by sqrt(2 - 2c^2), certified: sqrt 2; they move most at c = 0

No pair of records is the worst for score and matrices alike. The largest mu for any c is 0.85 of the
certified mu.
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

_Y = 0.999  # the outcome of the record: its residual is just below the clipping bound


@dataclass(frozen=True, kw_only=True)
class RegressionCase(SumsCase):
    """A regression of three uneven sites.

    cosine : the cosine between the two records, in the coordinates that the colluding site chooses.
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
        """The rows of a site. All cells are missing, except for the record of site 0."""
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
        """The total that the colluding site chooses.

        Moments give the cosine, residuals are at the clipping bound, and the score is 0.
        """
        values = np.zeros(length)
        if kind == OUTCOME:
            values[[12, 27]] = 0.5  # a spread of 0.375: residuals are clipped at 1
        elif kind == MOMENTS:
            first = [1.0 / (3.125 * (1.0 - self.cosine)), 0.0, 1.0 / (3.125 * (1.0 + self.cosine))]
            values[:] = first if t == 1 else [0.32, 0.0, 0.3201]  # later totals change nothing
        elif kind not in (HESSIAN, MEAT):
            values[-3:] = 0.2
        return values


def regression_case() -> RegressionCase:
    """The case with all sums of one regression and the pair of records that gives the largest mu."""
    return RegressionCase(
        name="regression, one colluder",
        about="opposite residuals, all sixteen sums, three uneven sites, a colluder who chooses every total",
    )
