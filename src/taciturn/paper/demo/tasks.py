"""The tasks of the demonstration: Adult if it is available, else the breast-cancer data of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataUnavailable
from ...core.types import Array
from ...data.datasets.adult import load_adult
from ...data.tables.dealing import deal_evenly
from ...data.tables.schema import Schema
from ...graph import Graph
from ...objective.problem import Problem
from ...rng import SeededStreams

SITES, SEED = 5, 0
# The documentation of the breast-cancer data states the least and the largest value of each measurement.
# fmt: off
_LEAST = np.array([
    6.981, 9.71, 43.79, 143.5, 0.053, 0.019, 0.0, 0.0, 0.106, 0.05,
    0.112, 0.36, 0.757, 6.802, 0.002, 0.002, 0.0, 0.0, 0.008, 0.001,
    7.93, 12.02, 50.41, 185.2, 0.071, 0.027, 0.0, 0.0, 0.156, 0.055,
])
_LARGEST = np.array([
    28.11, 39.28, 188.5, 2501.0, 0.163, 0.345, 0.427, 0.201, 0.304, 0.097,
    2.873, 4.885, 21.98, 542.2, 0.031, 0.135, 0.396, 0.053, 0.079, 0.03,
    36.04, 49.54, 251.2, 4254.0, 0.223, 1.058, 1.252, 0.291, 0.664, 0.208,
])
# fmt: on


@dataclass(frozen=True)
class Task:
    """The rows of five sites, the held-out rows, and the values of epsilon to compare.

    columns, y : all records, for models that encode them themselves.
    schema : the ranges of `columns`.
    test : a mask of the held-out records.
    curves : whether there are enough records to fit curves instead of straight lines.
    """

    name: str
    about: str
    sites: list[tuple[Array, Array]]
    C: float
    regularization: float
    X_test: Array
    y_test: Array
    schema: Schema
    columns: Mapping[str, NDArray[Any]]
    y: Array
    test: NDArray[np.bool_]
    epsilons: tuple[float, ...]
    curves: bool
    graph: Graph
    delta: float = 1e-5

    @property
    def epsilon(self) -> float:
        """The middle epsilon, for the printed table and the certificate."""
        return self.epsilons[len(self.epsilons) // 2]

    @cached_property
    def problem(self) -> Problem:
        """The joint problem of the sites."""
        return Problem(self.sites, C=self.C, regularization=self.regularization)


def find_task(name: str = "auto") -> Task:
    """The task of this name. "auto" means Adult, or breast cancer if Adult is not available."""
    if name == "breast-cancer":
        return breast_cancer()
    try:
        return adult()
    except DataUnavailable:
        if name == "adult":
            raise
        return breast_cancer("Adult was neither found nor downloaded, so another data set is used: ")


def adult() -> Task:
    """The Adult task: who earns more than $50,000? The scaling is public, and the test rows are held out."""
    data = load_adult(scaling="public")
    X, y = data.X[~data.test], data.y[~data.test]
    return Task(
        name="Adult",
        about=f"Adult: who earned more than $50,000? {len(y):,} people at five sites.",
        sites=deal_evenly(X, y, SITES, seed=SEED),
        C=1750.0,
        regularization=10**-2.5,
        graph=Graph.ring(SITES),
        X_test=data.X[data.test],
        y_test=data.y[data.test],
        schema=data.schema,
        columns={name: data.column(name) for name in data.schema.names},
        y=data.y,
        test=data.test,
        epsilons=(0.3, 1.0, 3.0),
        curves=True,
    )


def breast_cancer(why: str = "") -> Task:
    """The breast-cancer task: is the tumour benign? `why` begins the description of the task."""
    X, y = breast_cancer_rows()
    order = SeededStreams(SEED).generator(repeat=0, site=0, purpose="deal", t=2).permutation(len(y))
    held = np.isin(np.arange(len(y)), order[: len(y) // 5])
    test, train = np.flatnonzero(held), order[len(y) // 5 :]
    names = [f"measurement {k}" for k in range(len(_LEAST))]
    return Task(
        name="breast cancer",
        about=f"{why}breast cancer: is the tumour benign? {len(train)} people at five sites.",
        sites=deal_evenly(X[train], y[train], SITES, seed=SEED),
        C=80.0,
        regularization=1e-2,
        graph=Graph.ring(SITES),
        X_test=X[test],
        y_test=y[test],
        schema=Schema.of(**{name: (-1.0, 1.0) for name in names}),
        columns={name: X[:, k] for k, name in enumerate(names)},
        y=y,
        test=held,
        epsilons=(1.0, 4.0, 16.0),
        curves=False,
    )


def breast_cancer_rows() -> tuple[Array, Array]:
    """(X, y). A row of X has 30 measurements, scaled to [-1, 1] by published ranges, and a constant.

    Rows of a larger norm than 1 are scaled to norm 1.
    """
    from sklearn.datasets import load_breast_cancer

    raw, target = load_breast_cancer(return_X_y=True)
    X = np.clip(2 * (raw - _LEAST) / (_LARGEST - _LEAST) - 1, -1.0, 1.0)
    X = np.column_stack([X, np.ones(len(X))])
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, np.where(target == 1, 1.0, -1.0)
