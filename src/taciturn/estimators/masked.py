"""A fit that trusts all but `colluding` of the other sites: masked descent, one model for everybody."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from ..admm.run import Run
from ..data.tables.ball import Ball
from ..data.tables.dealing import deal
from ..engines.masked import prepare_masked, run_and_charge
from ..errors import ParameterError
from ..objective.losses import Logistic, Loss
from ..objective.problem import Problem
from ..objective.softmax import SoftmaxProblem
from ..planning.masked_plan import MaskedPlan, plan_masked
from ..privacy.facts import SiteBudget
from ..types import Array
from .assignment import SiteAssignment
from .settings import Wishes


@dataclass(frozen=True, eq=False)
class MaskedFit:
    """What a masked fit is made of: rows inside the unit ball, targets (outputs, rows), and a plan."""

    Z: Any
    targets: Array
    places: SiteAssignment
    plan: MaskedPlan
    loss: Loss
    marks: tuple[str, ...]
    what: str
    weights: Array | None = None

    def run(self, seed: int | None, ledger: str | PathLike[str] | None, *, show: bool | None = False) -> Run:
        """A real run with secret noise and masks; with a seed, a simulation."""
        setup = prepare_masked(
            self._problem(),
            self.places.graph,
            self.plan.method,
            rounds=self.plan.rounds,
            repeats=1,
            seed=seed,
            history=True,
            measure=False,
            names=self.places.names,
            marks=self.marks,
        )
        method = self.plan.method
        limit = None if ledger is None else SiteBudget(method.epsilon, method.delta)
        return run_and_charge(setup, ledger=ledger, budget=limit, show=show, what=self.what)

    def _problem(self) -> Problem | SoftmaxProblem:
        places = self.places
        options: dict[str, Any] = {
            "C": self.plan.C,
            "regularization": self.plan.regularization,
            "weights": places.by_site(self.weights),
            "persons": places.ids,
        }
        softmax = len(self.targets) > 1
        y = self.targets.argmax(axis=0).astype(np.float64) if softmax else self.targets[0]
        rows = deal(self.Z, y, places.site, sites=places.graph.n)
        if softmax:
            return SoftmaxProblem(rows, classes=len(self.targets), **options)
        return Problem(rows, loss=self.loss, **options)


def plan_fit(
    wishes: Wishes, places: SiteAssignment, ball: Ball, loss: Loss, *, dimension: int, outputs: int
) -> MaskedPlan:
    """Masked descent within the budget that was asked for."""
    if wishes.method is not None:
        raise ParameterError(
            "`method` and `colluding` exclude each other; a MaskedDescent says it by itself."
        )
    if wishes.noise != "best":
        raise ParameterError(
            f"`noise` must be 'best' with `colluding`; got {wishes.noise!r}: it is discrete there."
        )
    if outputs > 1 and not isinstance(loss, Logistic):
        raise ParameterError(
            "`colluding` with more than two classes needs PrivateLogisticRegression: one release serves all "
            "classes of softmax, and of nothing else."
        )
    most = wishes.max_rounds
    return plan_masked(
        epsilon=wishes.epsilon,
        delta=wishes.delta,
        samples=places.samples,
        graph=places.graph,
        dimension=dimension,
        colluding=wishes.colluding or 0,
        loss=loss,
        outputs=outputs,
        rounds=wishes.rounds if most is None else min(most, wishes.rounds or most),
        regularization=wishes.regularization,
        constant=ball.constant if ball.intercept else None,
    )
