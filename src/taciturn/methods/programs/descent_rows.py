"""The part of masked descent that reads the rows: it computes the share of a site in each sum.

Masked descent is gradient descent in which only noisy sums over all sites are released: the second moments of
the rows in the first sum, and gradients in all later sums. The share of a site is what its rows add to a sum;
random masks hide the share. The other parts of masked descent use only the released sums; they are in
`descent.py` and `whitened.py`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy.sparse.linalg import norm

from ...core.errors import DataError
from ...core.types import Array
from ...kernels.clipped_sums import add_dense, add_sparse
from ...objective.blocks import Block
from ...objective.local import LocalObjective
from ...objective.rows import AnyMatrix, Matrix, row_pieces
from ...privacy.sums import SumFacts
from ..sums.sums import Integers, to_integers
from .coordinates import Coordinates, WhitenedQuery

_CLOSE = 1e-12  # entries of a constant column may differ from its public value by this much (rounding)


class Share(ABC):
    """An object that computes one site's share of every sum of the descent.

    It treats several independent runs at once; their number is called `repeats`.

    Parameters
    ----------
    objective : the site's objective, which holds the site's rows
    loss : the loss that the descent minimises; it may differ from the loss of the objective
    total : n, the public number of records (or of persons) at all sites together
    full : True if the first sum contains all second moments, False if it contains means and squares
    constant : the public value of the last column if it is the same in every row, else None
    """

    def __init__(
        self, objective: Any, loss: Any, *, total: float, full: bool, constant: float | None = None
    ) -> None:
        self.objective, self.loss, self.total, self.full = objective, loss, float(total), full
        self.constant, self.weights = constant, objective.row_weights()
        self.even = bool(np.all(self.weights == 1.0))
        for part in objective.parts:
            check_constant(part.rows.Z, constant)

    def moments(self) -> Array:
        """The share of the first sum, (length,): all second moments, or means and squares."""
        features = self.objective.parts[0].rows.dimension
        return first_release(self.blocks(1), features, self.full, self.constant) / self.total

    @abstractmethod
    def gradient(self, y: Array) -> Array:
        """The share of the gradient at y, (repeats, outputs x d); the shape of y is (repeats, outputs, d)."""

    def blocks(self, repeats: int) -> Iterator[tuple[Block, Array]]:
        """Blocks of rows with their weights; the size of the blocks suits this number of repeats."""
        return weighted_blocks(self.objective.blocks(repeats), self.weights)

    def integers(self, query: Array | None, facts: SumFacts) -> Integers:
        """The share of the first sum if `query` is None, else of the gradient at `query`, in grid steps."""
        return to_integers(self.moments()[None] if query is None else self.gradient(query), facts.grid)

    def metrics(self, models: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of models (repeats, d) on the site's own rows.

        The quality is the accuracy, or the mean absolute error of a regression.
        """
        found: tuple[Array, Array] = self.objective.metrics(models)
        return found


class MarginShare(Share):
    """`Share` for a loss that is a function of the margin or residual of each row."""

    def gradient(self, y: Array) -> Array:
        F = y[:, 0, :]
        Ft, total = np.ascontiguousarray(F.T), np.zeros_like(F)
        in_place = getattr(self.loss, "slope_in_place", self.loss.slope)
        for block, weights in self.blocks(len(F)):
            with np.errstate(over="ignore"):  # 1 / (1 + exp(z)) is 0 if exp(z) overflows
                slope = in_place(block.margins(Ft))
            if not self.even:
                slope = slope * weights[:, None]
            total += (block.ZT @ slope).T
        return np.asarray(total / self.total)


class SoftmaxShare(Share):
    """`Share` for several classes (softmax). One release contains the gradients of all classes."""

    def gradient(self, y: Array) -> Array:
        repeats, classes, d = y.shape
        total = np.zeros((d, repeats * classes))
        for block, weights in self.blocks(repeats):
            left = self.objective.residuals(block, y, self.loss) * weights[:, None, None]
            total -= block.ZT @ left.reshape(-1, repeats * classes)  # minus, because Z = -X
        return np.asarray(total.T.reshape(repeats, -1) / self.total)


class WhitenedShare:
    """Computes one site's shares in whitened coordinates, in which rows vary equally in every direction.

    A row x becomes x~ = W'x; omega is the weight of x~, and cap and q are bounds (see `coordinates.py`). y is
    the label of the row. psi is the size of the slope of the loss, clipped so that psi ||x~|| <= q.
    """

    def __init__(self, objective: LocalObjective, total: int, constant: float | None) -> None:
        self.objective, self.total = objective, float(total)
        self.weights = objective.row_weights()
        self._kept: dict[int, tuple[Coordinates, Array]] = {}
        for part in objective.parts:
            check_constant(part.rows.Z, constant)

    def integers(self, query: WhitenedQuery, facts: SumFacts) -> Integers:
        """The share of the moments if the query has no points, else of the gradients, in whole grid steps."""
        if query.points is None:
            if query.coordinates[0].plain:
                return to_integers(self.moments(query.coordinates[0])[None], facts.grid)
            shares = [self.moments(at) for at in query.coordinates]
        else:
            pairs = enumerate(zip(query.coordinates, query.points, strict=True))
            shares = [self.gradient(at, f, self._limits(at, k)) for k, (at, f) in pairs]
        return to_integers(np.stack(shares), facts.grid)

    def metrics(self, models: Array) -> tuple[Array, Array]:
        """(mean loss, accuracy) of models (repeats, d) on the site's own rows."""
        return self.objective.metrics(models)

    def moments(self, at: Coordinates) -> Array:
        """sum omega x~ x~' / (cap n), as a vector (see `triangle`).

        The contribution of one record or person has norm at most 1 / n.
        """
        gram = np.zeros((self.objective.dimension,) * 2)
        for block, weights in weighted_blocks(self.objective.blocks(1), self.weights):
            if at.plain:
                gram += block.gram(weights)
                continue
            rows = np.asarray(block.Z @ at.W)
            omega = at.row_weights(np.sqrt(np.einsum("nd,nd->n", rows, rows)))
            rows *= np.sqrt(weights * omega)[:, None]
            gram += rows.T @ rows
        return triangle(gram / at.cap) / self.total

    def gradient(self, at: Coordinates, f: Array, limits: Array) -> Array:
        """-sum y psi x~ / (q n) at the model f. The contribution of a record or person has norm <= 1 / n."""
        summed, first = np.zeros_like(f), 0
        for part in self.objective.parts:
            total, lost = np.zeros_like(f), np.zeros_like(f)
            for some, Z in row_pieces(part.rows.Z):
                own = slice(first + some.start, first + some.stop)
                given = f, limits[own], self.weights[own]
                if isinstance(Z, np.ndarray):
                    add_dense(total, lost, Z, *given)
                else:
                    add_sparse(total, lost, Z.data, Z.indices, Z.indptr, *given)
            summed += total + lost
            first += part.rows.samples
        return -(at.W.T @ summed) / (at.q * self.total)

    def _limits(self, at: Coordinates, repeat: int) -> Array:
        """The bound min(1, q / r) on the slope of each row, where r = ||W'x||; cached."""
        kept = self._kept.get(repeat)
        if kept is None or kept[0] is not at:
            blocks = self.objective.blocks(1)
            found = [np.linalg.norm(np.asarray(block.Z @ at.W), axis=1) for block in blocks]
            lengths = np.concatenate(found)
            kept = self._kept[repeat] = at, np.minimum(1.0, at.q / np.maximum(lengths, 1e-100))
        return kept[1]


def weighted_blocks(blocks: Iterable[Block], weights: Array) -> Iterator[tuple[Block, Array]]:
    """Pairs (block of rows, weights of these rows).

    A row has a weight of at most 1. The weights of all rows of a person add up to at most 1.
    """
    start = 0
    for block in blocks:
        stop = start + block.Z.shape[0]
        yield block, weights[start:stop]
        start = stop


def first_release(blocks: Iterable[tuple[Block, Array]], d: int, full: bool, constant: float | None) -> Array:
    """The share of the first sum, before it is divided by n.

    If `full` is True, this is the sum of x x' over the rows x, as a vector (see `triangle`). Otherwise it is
    the sum of each column, followed by the sum of squares of each column; the constant column is left out.

    The stored row is s x, where s is the label if the labels are 1 and -1, and s = -1 otherwise. Only the
    sums of columns depend on s. If there is a constant column, its entry in x is positive, so the sign of
    this entry in the stored row is s. The stored row is then multiplied by s, which restores x. Without a
    constant column, the rows are summed as they are stored.
    """
    if full:
        gram = np.zeros((d, d))
        for block, weights in blocks:
            gram += block.gram(weights)
        return triangle(gram)
    sums, squares = np.zeros((2, d))
    for block, weights in blocks:
        signs = np.ones(len(weights)) if constant is None else np.sign(last_column(block.Z))
        sums += block.ZT @ (weights * signs)
        squares += block.squares(weights)
    keep = slice(None) if constant is None else slice(-1)
    return np.concatenate([sums[keep], squares[keep]])


def triangle(gram: Array) -> Array:
    """The upper triangle of a symmetric matrix, as a vector.

    Entries off the diagonal are multiplied by sqrt 2, so the norm of the vector is the norm of the matrix.
    """
    scaled = np.triu(gram, 1) * math.sqrt(2.0) + np.diag(np.diagonal(gram))
    return scaled[np.triu_indices(len(gram))]


def last_column(Z: Matrix) -> Array:
    """The last column of dense or sparse rows."""
    if isinstance(Z, np.ndarray):
        return np.asarray(Z[:, -1])
    unit = np.zeros(Z.shape[1])
    unit[-1] = 1.0
    return np.asarray(Z @ unit)


def check_constant(Z: AnyMatrix, constant: float | None) -> None:
    """Raise unless every row ends with `constant` or -`constant`, or contains only zeros."""
    if constant is not None:
        for _, piece in row_pieces(Z):
            _check_constant(piece, constant)


def _check_constant(Z: Matrix, constant: float) -> None:
    away = np.flatnonzero(np.abs(np.abs(last_column(Z)) - constant) > _CLOSE)
    if not len(away):
        return
    sizes = np.linalg.norm(Z[away], axis=1) if isinstance(Z, np.ndarray) else norm(Z[away], axis=1)
    if np.any(sizes > 0):
        raise DataError(
            f"`constant` = {constant:g} must be the last entry of every row, except in rows of zeros."
        )
