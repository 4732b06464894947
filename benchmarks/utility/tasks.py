"""The data sets: rows inside the unit ball with their constant, some of them set aside for testing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from taciturn.data import Dataset, load_adult, load_credit, load_support
from taciturn.data.tables.dealing import assign_evenly
from taciturn.estimators.rows import Ball
from taciturn.planning.proxy import generate_proxy

Array = NDArray[np.float64]
Hands = list[tuple[Array, Array]]

_TEST_SHARE, _SPLIT_SEED = 0.25, 0


@dataclass(frozen=True, eq=False)
class Task:
    """X, y without the constant, for estimators; Z the same rows inside the ball, for everybody else."""

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array

    @property
    def ball(self) -> Ball:
        """Clipped and completed by a constant, as the estimators do it."""
        return Ball(1.0, intercept=True)

    @cached_property
    def Z(self) -> Array:  # noqa: N802
        return np.asarray(self.ball.rows(self.X))

    @cached_property
    def Z_test(self) -> Array:  # noqa: N802
        return np.asarray(self.ball.rows(self.X_test))

    @property
    def dimension(self) -> int:
        return self.X.shape[1] + 1

    def hands(self, sites: int, seed: int) -> Hands:
        """The training rows, dealt evenly."""
        site, Z = assign_evenly(len(self.y), sites, seed=seed), self.Z
        return [(Z[site == i], self.y[site == i]) for i in range(sites)]

    def score(self, f: Array) -> tuple[float, float]:
        """Mean logistic loss and accuracy on the test rows; the mean over models where f has several."""
        margins = self.y_test[:, None] * (self.Z_test @ np.atleast_2d(f).T)
        return float(np.logaddexp(0, -margins).mean()), float((margins > 0).mean())


class StandIn(Task):
    """The planner's public proxy as a task: rows of its own making, the constant among their columns."""

    @cached_property
    def Z(self) -> Array:  # noqa: N802
        return self.X

    @cached_property
    def Z_test(self) -> Array:  # noqa: N802
        return self.X_test

    @property
    def dimension(self) -> int:
        return self.X.shape[1]


def stand_in(task: Task) -> StandIn:
    """As many rows and columns as the task, from the generator that the planner uses."""
    rows = len(task.y)
    made = generate_proxy(task.dimension, rows + rows // 4, "classification")
    return StandIn(task.name, made.X[:rows], made.y[:rows], made.X[rows:], made.y[rows:])


def load(name: str) -> Task:
    """Adult with its own test rows; the others with a quarter of their rows set aside, by chance."""
    data: Dataset = {
        "adult": lambda: load_adult(scaling="public"),
        "credit": load_credit,
        "support": load_support,
    }[name]()
    test = (
        data.test if data.test.any() else np.random.default_rng(_SPLIT_SEED).random(len(data)) < _TEST_SHARE
    )
    return Task(name, data.X[~test], data.y[~test], data.X[test], data.y[test])
