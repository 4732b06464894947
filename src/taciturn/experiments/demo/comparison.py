"""The choice at one budget: no privacy, trust nobody, or trust all but one of the other sites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...admm.averaging import network_average
from ...admm.methods import ADMM
from ...admm.run import Run
from ...engines.simulate import simulate
from ...masked.method import MaskedDescent
from ...masked.public import rule
from ...planning.plan import plan
from ...planning.privacy_plan import PrivacyPlan
from ...privacy.certificate.certificate import Certificate
from ...types import Array
from .tasks import SEED, Task

NAMES = ("no privacy", "trust nobody", "at most one curious site")


@dataclass(frozen=True)
class MethodResult:
    """One choice on a task: its run, how it does on rows held out, and its certificate."""

    name: str
    run: Run
    test_accuracy: float
    test_loss: float
    certificate: Certificate

    @property
    def private(self) -> bool:
        """Whether any noise was added."""
        return self.certificate.run.noise != "none"


def compare(task: Task) -> Iterator[MethodResult]:
    """Run every choice, one after another; the private ones at the same (epsilon, delta)."""
    yield _without_privacy(task)
    yield _trusting_nobody(task)
    yield _one_curious_site(task)


def _without_privacy(task: Task) -> MethodResult:
    run = simulate(task.problem, task.graph, ADMM(task.penalty), rounds=task.rounds, seed=SEED)
    return _result(NAMES[0], task, run, run.average()[0])


def _trusting_nobody(task: Task) -> MethodResult:
    """Penalty perturbation as the planner sets it: it has seen public numbers only."""
    problem = task.problem
    found = plan(
        epsilon=task.epsilon,
        delta=task.delta,
        samples=problem.samples.tolist(),
        graph=task.graph,
        dimension=problem.dimension,
        C=problem.C,
        regularization=problem.regularization,
        effort="quick",
    )
    if not isinstance(found, PrivacyPlan):
        raise TypeError("who trusts nobody is given penalty perturbation")
    run = simulate(problem, task.graph, found.method, rounds=found.rounds, seed=SEED, tol=found.tol)
    return _result(NAMES[1], task, run, network_average(run.coef, found.weights)[0])


def _one_curious_site(task: Task) -> MethodResult:
    """Masked descent: all honest sites' noise protects each record together."""
    method = MaskedDescent(epsilon=task.epsilon, delta=task.delta, colluding=1)
    run = simulate(task.problem, task.graph, method, rounds=rule.ROUNDS, seed=SEED)
    return _result(NAMES[2], task, run, run.average()[0])


def _result(name: str, task: Task, run: Run, f: Array) -> MethodResult:
    margins = task.y_test * (task.X_test @ f)
    loss = float(np.logaddexp(0.0, -margins).mean())
    return MethodResult(name, run, float((margins > 0).mean()), loss, run.certificate(task.delta))
