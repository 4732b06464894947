"""Softmax regression with K classes: L = log sum_k exp(f_k.x) - f_y.x, with one vector f_k for each class.

The gradient of one record is (p - e_y) x', where p are the predicted probabilities and e_y is the one-hot
label; ||p - e_y|| <= sqrt 2 for any K. So one noisy release serves all classes, while K separate problems
would need K releases. A model is a vector of K d numbers: the d numbers of each class, class after class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core import checks
from ..core.errors import DataError, ParameterError
from ..core.types import Array
from .blocks import Block, WeightedRows, row_blocks
from .problem import DealtProblem, row_weights
from .regularizers import L2
from .rows import signed_rows


@dataclass(frozen=True)
class Softmax:
    """L = log sum_k exp(f_k.x) - f_y.x for y = 0 .. K - 1; ||p - e_y|| <= sqrt 2, curvature <= 1/2.

    bounded : if True, a record has the weight w(p) = sqrt(1 - 1/K) / max_k ||p - e_k|| in place of 1.
        The weight depends on the prediction, and not on the label. So, if p is the true distribution, the
        mean of w(p) (p - e_y) is still 0. The norm of w(p) (p - e_y) is at most sqrt(1 - 1/K), which is its
        value at f = 0. For two classes, w(p) (p - e_y) x' is the gradient of a convex loss. For more classes
        it is not a gradient, but only an estimating equation (an equation whose root is the model).
    """

    classes: int
    bounded: bool = False

    name: ClassVar[str] = "softmax"
    kind: ClassVar[str] = "classes"
    curvature_bound: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", checks.whole("classes", self.classes, least=2))

    @property
    def slope_at_zero(self) -> float:
        """||p - e_y|| at f = 0, where all classes have the same probability."""
        return math.sqrt(1.0 - 1.0 / self.classes)

    @property
    def slope_bound(self) -> float:
        """An upper bound on the norm of p - e_y, or of w(p) (p - e_y) if `bounded`."""
        return self.slope_at_zero if self.bounded else math.sqrt(2.0)


class SoftmaxObjective:
    """The rows of one site with labels 0 .. classes - 1. A row whose class is unknown must have x = 0."""

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        loss: Softmax,
        name: str = "the site",
        weights: Array | None = None,
        count: int | None = None,
    ) -> None:
        rows = signed_rows(X, y, "regression", site=name)  # Z = -X, offset = label
        if not np.isin(np.asarray(rows.offset), np.arange(loss.classes)).all():
            raise DataError(f"`y` of {name} must contain whole numbers from 0 to {loss.classes - 1}.")
        self.loss, self.parts = loss, (WeightedRows(rows, 1.0),)
        self.weights = np.ones(rows.samples) if weights is None else np.asarray(weights, dtype=np.float64)
        if self.weights.shape != (rows.samples,) or not np.all((self.weights >= 0) & (self.weights <= 1)):
            raise DataError(f"`weights` of {name} must be {rows.samples} numbers from 0 to 1, one per row.")
        self.samples = rows.samples if count is None else count
        self.features, self.largest_norm = rows.dimension, rows.norm
        self.dimension = rows.dimension * loss.classes
        self._blocks: tuple[int, Sequence[Block]] = 0, []

    def blocks(self, repeats: int) -> Sequence[Block]:
        """The rows, cut into blocks that suit this number of models. Z is -X, and `offset` has the labels."""
        if self._blocks[0] != repeats:
            self._blocks = repeats, row_blocks(self.parts, repeats * self.loss.classes)
        return self._blocks[1]

    def row_weights(self) -> Array:
        """The weight of every row."""
        return self.weights

    def residuals(self, block: Block, F: Array, loss: Softmax) -> Array:
        """w(p) (p - e_y) for every row of a block and every model, (rows, repeats, classes)."""
        p = self._margins(block, F)
        p -= p.max(axis=2, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=2, keepdims=True)
        weight = 1.0
        if loss.bounded:
            farthest = np.square(p).sum(axis=2, keepdims=True) + 1.0 - 2.0 * p.min(axis=2, keepdims=True)
            weight = loss.slope_at_zero / np.sqrt(farthest)
        labels = self._labels(block)[:, None, None]
        np.put_along_axis(p, labels, np.take_along_axis(p, labels, axis=2) - 1.0, axis=2)
        return np.asarray(p * weight)

    def metrics(self, F: Array) -> tuple[Array, Array]:
        """(mean loss, accuracy) of every model, a row of F.

        If k classes share the best score and the label is one of them, the row counts as 1/k correct.
        """
        loss, right, start = np.zeros(len(F)), np.zeros(len(F)), 0
        for block in self.blocks(len(F)):
            weights = self.weights[start : start + block.Z.shape[0]]
            start += len(weights)
            u = self._margins(block, F)
            top = u.max(axis=2)
            own = np.take_along_axis(u, self._labels(block)[:, None, None], axis=2)[:, :, 0]
            loss += weights @ (top + np.log(np.exp(u - top[:, :, None]).sum(axis=2)) - own)
            right += weights @ ((own == top) / (u == top[:, :, None]).sum(axis=2))
        total = float(self.weights.sum())
        return loss / total, right / total

    def _margins(self, block: Block, F: Array) -> Array:
        K, d = self.loss.classes, self.features
        flat = np.ascontiguousarray(F.reshape(-1, d).T)
        return np.asarray(-(block.Z @ flat)).reshape(-1, F.size // (K * d), K)

    def _labels(self, block: Block) -> NDArray[np.int64]:
        return np.asarray(block.offset).astype(np.int64)


class SoftmaxProblem(DealtProblem):
    """A classification problem with several classes and a softmax loss, for the method `MaskedDescent`.

    Parameters
    ----------
    sites : one pair (X, y) per site, with labels y from 0 to classes - 1
    classes : K, the public number of classes
    C, regularization, weights, persons, rows_per_person, sites_per_person : as in `Problem`

    >>> problem = SoftmaxProblem([([[1.0]], [0]), ([[0.5]], [2])], classes=3, C=1.0, regularization=0.1)
    >>> problem.n, problem.dimension, problem.samples.tolist()
    (2, 3, [1, 1])
    """

    def __init__(
        self,
        sites: Sequence[tuple[Any, Any]],
        *,
        classes: int,
        C: float,
        regularization: float,
        weights: Sequence[Any] | None = None,
        persons: Sequence[Any] | None = None,
        rows_per_person: int | None = None,
        sites_per_person: int = 1,
    ) -> None:
        self.loss, self.regularizer = Softmax(classes), L2()
        super().__init__(C, regularization, len(sites), persons, rows_per_person, sites_per_person)
        self.hold(
            SoftmaxObjective(
                X,
                y,
                loss=self.loss,
                name=f"site {i}",
                **row_weights(self.persons, weights, i, len(sites)),
            )
            for i, (X, y) in enumerate(sites)
        )
        if self.C > self.samples.min():
            least = self.samples.min()
            raise ParameterError(
                f"`C` must be at most {least}, the number of samples of the smallest site; got {self.C:g}."
            )
