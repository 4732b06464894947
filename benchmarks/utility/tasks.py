"""The data sets and their cases: rows with a constant, inside the unit ball; some rows are held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

import taciturn as tt
from taciturn.data import Dataset, Schema, load_adult, load_credit, load_support
from taciturn.data.features.expansion import Expansion
from taciturn.data.tables.column_parsing import Parsed
from taciturn.data.tables.encoder import bound_rows, encode, expand
from taciturn.data.tables.unit_ball import UnitBallScaling

Array = NDArray[np.float64]
Hands = list[tuple[Array, Array]]

SPLITS = ("even", "uneven", "by column")
_TEST_SHARE, _SPLIT_SEED = 0.25, 0
_LEAST = 0.01  # the least share of the rows at an uneven site; with over 50 sites, a tenth of an even share


@dataclass(frozen=True, eq=False)
class Task:
    """One data set: X and y without the constant, for estimators; Z, the rows in the unit ball, for others.

    group : a column of the training rows before encoding, to split the rows by; `column` is its name.
    schema, cells, cells_test : the table itself, if there is one.
    """

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array
    group: NDArray[np.generic] | None = None
    column: str = ""
    schema: Schema | None = None
    cells: Parsed | None = None
    cells_test: Parsed | None = None

    def mapped(self, curves: int, surfaces: int) -> Task:
        """The task with a public feature map applied to its rows; unchanged without curves and surfaces."""
        if self.schema is None or self.cells is None or self.cells_test is None or not (curves or surfaces):
            return self
        expansion = Expansion(curves, surfaces)
        X, X_test = (
            expand(self.schema, cells, expansion, missing="indicator")
            for cells in (self.cells, self.cells_test)
        )
        return replace(self, X=X, X_test=X_test)

    @property
    def ball(self) -> UnitBallScaling:
        """The scaling of the estimators: rows are clipped, and a constant is added."""
        return UnitBallScaling(1.0, intercept=True)

    @cached_property
    def Z(self) -> Array:  # noqa: N802
        return np.asarray(self.ball.rows(self.X))

    @cached_property
    def Z_test(self) -> Array:  # noqa: N802
        return np.asarray(self.ball.rows(self.X_test))

    @property
    def dimension(self) -> int:
        return self.X.shape[1] + 1

    def assign(self, sites: int, split: str) -> NDArray[np.int64]:
        """The site of every row: evenly, by Dirichlet(0.3) with a smallest share, or by a column."""
        draw, rows = np.random.default_rng(7), len(self.y)
        if split == "even":
            return draw.permutation(rows) % sites
        if split == "uneven":
            least = _LEAST if sites <= 50 else 0.1 / sites
            shares = least + (1 - sites * least) * draw.dirichlet(np.full(sites, 0.3))
            ends = np.rint(np.cumsum(shares)[:-1] * rows)
            return np.searchsorted(ends, draw.permutation(rows), side="right")
        if self.group is None:
            raise ValueError(f"{self.name} has no column to split by")
        order = np.lexsort((draw.random(rows), self.group))
        site = np.empty(rows, dtype=np.int64)
        site[order] = np.arange(rows) * sites // rows
        return site

    @lru_cache(maxsize=4)  # noqa: B019
    def hands(self, sites: int, split: str = "even") -> Hands:
        """The training rows of every site."""
        site, Z = self.assign(sites, split), self.Z
        return [(Z[site == i], self.y[site == i]) for i in range(sites)]

    def score(self, f: Array) -> tuple[float, float]:
        """Mean logistic loss and accuracy on the test rows; the mean over models if f has several."""
        margins = self.y_test[:, None] * (self.Z_test @ np.atleast_2d(f).T)
        return float(np.logaddexp(0, -margins).mean()), float((margins > 0).mean())


_COLUMNS = {"adult": "education-num", "credit": "EDUCATION", "support": "dzgroup"}


@lru_cache(maxsize=16)
def load(name: str) -> Task:
    """Adult with its own test rows; other data sets with a random quarter of their rows held out."""
    data: Dataset = {
        "adult": lambda: load_adult(scaling="public"),
        "credit": load_credit,
        "support": load_support,
    }[name]()
    test = (
        data.test if data.test.any() else np.random.default_rng(_SPLIT_SEED).random(len(data)) < _TEST_SHARE
    )
    column = _COLUMNS[name]
    return make_task(name, data.schema, data._columns, data.y, test, data.column(column), column)


def make_task(
    name: str,
    schema: Schema,
    cells: Parsed,
    y: Array,
    test: NDArray[np.bool_],
    group: NDArray[np.generic],
    column: str,
) -> Task:
    """Encode a parsed table; a missing cell makes its columns 0."""
    X = bound_rows(encode(schema, cells, missing="field"), bound=1.0, how="clip", worst=1.0)
    known, held = ({key: values[keep] for key, values in cells.items()} for keep in (~test, test))
    return Task(name, X[~test], y[~test], X[test], y[test], group[~test], column, schema, known, held)


@dataclass(frozen=True)
class Case:
    """One data set with one split and one budget. The rows of rivals are always distributed evenly."""

    task: Task
    sites: int
    epsilon: float
    delta: float
    topology: str = "complete"

    @property
    def graph(self) -> tt.Graph:
        return graph(self.sites, self.topology)

    @property
    def least(self) -> int:
        """B, the number of rows, of the smallest site."""
        return len(self.task.y) // self.sites


def graph(sites: int, topology: str) -> tt.Graph:
    """A ring, a complete graph, or a torus: a square grid whose opposite sides are joined."""
    if topology == "ring":
        return tt.Graph.ring(sites)
    if topology == "complete":
        return tt.Graph.complete(sites)
    side = round(sites**0.5)
    right = [(i * side + j, i * side + (j + 1) % side) for i, j in product(range(side), repeat=2)]
    down = [(i * side + j, (i + 1) % side * side + j) for i, j in product(range(side), repeat=2)]
    return tt.Graph(sites, tuple(right + down))


Setting = tuple[float, ...]
Models = Array | None
Fit = Callable[[Case, Sequence[Setting], Sequence[int]], list[Models]]
"""For each setting, one model per seed; None if no noise is enough."""
