"""FitTask: carries out a fit on the rows of all sites, as one run or as one run per output.

A run is the training of one linear model (an output), in which the sites exchange noisy vectors round by
round. A classifier with more than two classes has one output for each class, unless one softmax run trains
all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from ..data.tables.clipping import merge_entries
from ..data.tables.dealing import SiteAssignment, row_numbers
from ..data.tables.unit_ball import UnitBallScaling
from ..methods.run import Run
from ..objective.problem import Problem
from ..objective.softmax import SoftmaxProblem
from ..planning.request import Plan
from ..privacy.facts import SiteBudget
from ..runtime.setup import Setup, prepare
from ..runtime.train import run_charged


@dataclass(frozen=True, eq=False, repr=False)
class DealtRows(Sequence[tuple[Any, Array]]):
    """(Z_i, y_i) of each site, computed on access: rows scaled into the unit ball, and their targets.

    order : for each site, the numbers of its rows.
    keep : False for a row that counts as zeros.
    """

    fresh: ClassVar[bool] = True  # each access makes new arrays, which the caller may change
    X: Any
    y: Array
    ball: UnitBallScaling
    keep: NDArray[np.bool_] | None
    order: list[NDArray[np.intp]]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, site: Any) -> Any:
        rows = self.order[site]
        return self.ball.rows(self.X, self.keep, rows), self.y[rows]


@dataclass(frozen=True, eq=False, repr=False)
class FitTask:
    """The input of a fit: rows, their scaling into the unit ball, targets (outputs, rows), and a plan.

    keep : False for a row that counts as zeros.
    places : the site of each row, and the graph of the sites.
    plan : the settings of the run, chosen from public numbers.
    weights : the weight of each row.
    marks : warnings for the certificate.
    what : the name of the fit in messages about the active budget.
    """

    X: Any
    ball: UnitBallScaling
    keep: NDArray[np.bool_] | None
    targets: Array
    places: SiteAssignment
    plan: Plan
    weights: Array | None
    marks: tuple[str, ...]
    what: str

    def run(
        self,
        seed: int | None,
        *,
        ledger: str | PathLike[str] | None,
        budget: SiteBudget | None,
        show: bool | None,
    ) -> list[Run]:
        """Carry out every run of the plan: with secret noise, or with a seed as a simulation."""
        return run_charged(self._setups(seed), ledger=ledger, budget=budget, show=show, what=self.what)

    def _setups(self, seed: int | None) -> Iterator[Setup]:
        """Prepare the runs one at a time, so that the rows of only one run are in memory."""
        plan, classes = self.plan, len(self.targets)
        softmax = plan.together and classes > 1
        labels = [self.targets.argmax(axis=0).astype(np.float64)] if softmax else self.targets
        for k, y in enumerate(labels):
            own = None if seed is None else seed if plan.together else _seed_of_output(seed, k)
            yield prepare(
                self._problem(y, classes if softmax else None),
                self.places.graph,
                plan.method,
                rounds=plan.rounds,
                seed=own,
                tol=plan.tol,
                history=True,
                measure=False,
                outputs=len(labels),
                names=self.places.names,
                marks=self.marks,
            )

    def _problem(self, y: Array, classes: int | None) -> Problem | SoftmaxProblem:
        plan, places = self.plan, self.places
        order = row_numbers(self.X.shape[0], places.site, places.graph.n)
        rows = DealtRows(merge_entries(self.X), y, self.ball, self.keep, order)
        options: dict[str, Any] = {
            "C": plan.C,
            "regularization": plan.regularization,
            "weights": places.by_site(self.weights),
            "persons": places.ids,
        }
        if classes is not None:
            return SoftmaxProblem(rows, classes=classes, **options)
        loss: Any = plan.loss
        return Problem(rows, loss=loss, **options)


def _seed_of_output(seed: int, output: int) -> int:
    """The seed of one output, so that each output has different noise."""
    return int(np.random.SeedSequence([seed, output]).generate_state(1)[0])
