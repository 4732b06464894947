"""Prepare the runs of a fit: one run for each output, or one softmax run for all outputs.

An output is one linear model; a classifier with more than two classes has one output for each class. In a
run, the sites exchange noisy vectors round by round. A `Setup` has all that a run needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from ..data.tables.clipping import merge_entries
from ..data.tables.dealing import SiteAssignment, row_numbers
from ..data.tables.unit_ball import UnitBallScaling
from ..objective.losses import Loss
from ..objective.problem import Problem
from ..objective.softmax import SoftmaxProblem
from ..planning.request import Plan
from ..runtime.setup import Setup, prepare


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


def fit_setups(
    X: Any,
    targets: Array,
    ball: UnitBallScaling,
    places: SiteAssignment,
    plan: Plan,
    seed: int | None,
    *,
    keep: NDArray[np.bool_] | None,
    weights: Array | None,
    marks: tuple[str, ...],
) -> Iterator[Setup]:
    """The setups of all runs of a fit, prepared one at a time, so that memory holds the rows of one run only.

    X, ball : the rows, and how they are scaled into the unit ball.
    targets : the targets of each output, (outputs, rows).
    places : the site of each row, and the graph of the sites.
    plan : the settings of the run, chosen from public numbers.
    seed : None draws secret noise; a seed makes the run a simulation.
    keep : False for a row that counts as zeros.
    weights : the weight of each row.
    marks : warnings for the certificate.
    """
    softmax, loss = plan.together and len(targets) > 1, plan.loss
    labels = [targets.argmax(axis=0).astype(np.float64)] if softmax else targets
    order = row_numbers(X.shape[0], places.site, places.graph.n)
    options: dict[str, Any] = {
        "C": plan.C,
        "regularization": plan.regularization,
        "weights": places.by_site(weights),
        "persons": places.ids,
    }
    for k, y in enumerate(labels):
        rows = DealtRows(merge_entries(X), y, ball, keep, order)
        yield prepare(
            SoftmaxProblem(rows, classes=len(targets), **options)
            if softmax
            else Problem(rows, loss=cast(Loss, loss), **options),
            places.graph,
            plan.method,
            rounds=plan.rounds,
            seed=seed if seed is None or plan.together else _seed_of_output(seed, k),
            tol=plan.tol,
            history=True,
            measure=False,
            outputs=len(labels),
            names=places.names,
            marks=marks,
        )


def _seed_of_output(seed: int, output: int) -> int:
    """The seed of one output, so that each output has different noise."""
    return int(np.random.SeedSequence([seed, output]).generate_state(1)[0])
