"""The measured work: private M-ADMM on data shaped like Adult (45,222 x 105), at 5 sites, 10 repeats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import taciturn as tt
from taciturn.core.errors import DataUnavailable
from taciturn.objective import Objective, Solution
from taciturn.objective.solver import many
from taciturn.objective.solver.general import minimise_general

Array = NDArray[np.float64]

SITES, REPEATS = 5, 10
C, RHO, RATE, START = 1750.0, 10**-2.5, 3.0, 0.5
TOL = 1e-8


@dataclass(eq=False)
class Task:
    """One primal update of one site for all repeats, which each contender has to solve."""

    objective: Objective
    curvature: float
    linear: Array
    start: Array
    solution: Solution
    X: Array
    y: Array

    @property
    def strong(self) -> float:
        """m = rho/N + 2 eta V."""
        return self.objective.strong + self.curvature

    @property
    def weight(self) -> float:
        """C / B."""
        return self.objective.parts[0].weight

    @cached_property
    def Z(self) -> Array:  # noqa: N802 - the signed rows, as in the solver
        """y X, computed before the clock starts."""
        return self.y[:, None] * self.X


def adult_shaped() -> tuple[Array, Array, str]:
    """(X, y, description): Adult if it is available, else random rows of the same shape."""
    try:
        data = tt.data.load_adult(fetch=False)
    except DataUnavailable:
        return *one_hot_rows(45_222), "random rows shaped like Adult"
    return data.X, data.y, "Adult"


def one_hot_rows(rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Six numeric columns and one-hot groups of 8 + 16 + 7 + 14 + 6 + 5 + 2 + 41, each row of norm 1."""
    rng = np.random.default_rng(seed)
    X = np.zeros((rows, 105))
    X[:, :6] = rng.random((rows, 6)) ** 2
    column = 6
    for size in (8, 16, 7, 14, 6, 5, 2, 41):
        shares = rng.dirichlet(np.full(size, 0.5))
        X[np.arange(rows), column + rng.choice(size, rows, p=shares)] = 1.0
        column += size
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ rng.normal(size=105) + 0.5 * rng.normal(size=rows) > 0, 1.0, -1.0)
    return X, y


def method() -> tt.PenaltyPerturbation:
    """Penalty perturbation with theta = eta = 0.5 and alpha = 3."""
    return tt.PenaltyPerturbation(penalty=START, dual_step=START, noise=tt.NormNoise(rate=RATE))


def run(problem: tt.Problem, graph: tt.Graph, *, rounds: int, repeats: int, threads: int | None) -> object:
    """`taciturn.simulate` as a user calls it."""
    return tt.simulate(
        problem, graph, method(), rounds=rounds, repeats=repeats, tol=TOL, threads=threads, progress=False
    )


def recorded(X: Array, y: Array, *, rounds: int) -> tuple[tt.Problem, list[list[Task]]]:
    """The problem, and the tasks that a real run gives to each site in every round."""
    hands = [(X[i::SITES].copy(), y[i::SITES].copy()) for i in range(SITES)]
    problem = tt.Problem(hands, C=C, regularization=RHO)
    with _recording(hands) as tasks:
        run(problem, tt.Graph.ring(SITES), rounds=rounds, repeats=REPEATS, threads=1)
    return problem, [tasks[t * SITES : (t + 1) * SITES] for t in range(rounds)]


@contextmanager
def _recording(hands: list[tuple[Array, Array]]) -> Iterator[list[Task]]:
    tasks: list[Task] = []

    def watched(
        objective: Objective, curvature: float, linear: Array, start: Array, *rest: object
    ) -> Solution:
        solution = minimise_general(objective, curvature, linear, start, *rest)
        X, y = hands[len(tasks) % SITES]
        tasks.append(Task(objective, curvature, linear, start, solution=solution, X=X, y=y))
        return solution

    with mock.patch.object(many, "minimise_general", watched):
        yield tasks
