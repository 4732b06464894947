"""No privacy, dual and penalty perturbation on the same data at one budget: what `taciturn demo` shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...admm.methods import ADMM, DualPerturbation, Method, PenaltyPerturbation
from ...admm.run import Run
from ...engines.simulate import simulate
from ...privacy.certificate.certificate import Certificate
from ...privacy.noise import NormNoise
from ...schedules import Constant, Geometric, Schedule
from ..figures.costs import certify_run, rate_within
from .tasks import SEED, Task

_TOL, _OUTPUT_RATE = 1e-8, 1e4  # an error of at most 1e-8, and noise of norm ~ d / 1e4 that covers it
_NOISE_GROWTH = 0.5  # penalty perturbation lets the noise rate grow half as fast as the penalty


@dataclass(frozen=True)
class MethodResult:
    """One method's run on a task, the share of held-out rows it gets right, and its certificate."""

    name: str
    run: Run
    test_accuracy: float
    certificate: Certificate

    @property
    def private(self) -> bool:
        """Whether any noise was added."""
        return self.certificate.run.noise != "none"


def methods(task: Task) -> dict[str, Callable[[float], Method]]:
    """Each private method as a function of its first noise rate, by name."""
    ratio = 1 + _NOISE_GROWTH * (task.growth - 1)
    output = NormNoise(_OUTPUT_RATE)

    def dual(penalty: float) -> Callable[[float], Method]:
        return lambda rate: DualPerturbation(penalty, NormNoise(rate), output_noise=output)

    def grown(rate: float) -> Method:
        penalty: Schedule = Geometric(task.penalty, task.growth)
        noise = NormNoise(Geometric(rate, ratio))
        return PenaltyPerturbation(penalty, Constant(task.penalty), noise, output_noise=output)

    return {
        f"DVP, penalty {task.penalty:g}": dual(task.penalty),
        f"DVP, penalty {task.tuned:g}": dual(task.tuned),
        f"PP, penalty {task.penalty:g}, growing": grown,
    }


def compare(task: Task) -> Iterator[MethodResult]:
    """Run every method of the task, one after another; the private ones at the same (epsilon, delta)."""
    yield _run_method("no privacy", task, ADMM(task.penalty))
    for name, make in methods(task).items():

        def cost(rate: float, make: Callable[[float], Method] = make) -> float:
            return certify_run(
                task.problem, task.graph, make(rate), rounds=task.rounds, delta=task.delta, tol=_TOL
            ).epsilon

        yield _run_method(name, task, make(rate_within(cost, task.epsilon)))


def _run_method(name: str, task: Task, method: Method) -> MethodResult:
    run = simulate(task.problem, task.graph, method, rounds=task.rounds, seed=SEED, tol=_TOL)
    right = np.sign(task.X_test @ run.average()[0]) == task.y_test
    return MethodResult(name, run, float(right.mean()), run.certificate(task.delta))
