"""The objective of a site: O(f) = (C/B) sum_n L(z_n) + (rho/N) R(f), for many models f at once.

L is the loss and R the regulariser; C and rho are their weights. The site has B rows, and there are N sites.
z_n is the margin (or the residual) of row n, as rows.py defines it. Models are passed as the rows of a matrix
F, and their number is called `repeats`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from ..core import checks
from ..core.errors import ParameterError
from ..core.types import Array
from .blocks import Block, WeightedRows, row_blocks, weighted_parts
from .checking import check_loss, check_regularizer
from .losses import Loss
from .regularizers import L2, Regularizer
from .rows import Matrix, signed_rows

_SMALL = 400  # with more rows and more features than this, Lanczos computes only the largest eigenvalue


class Objective:
    """O(f) = rho R(f) + sum_n weight_n L(z_n). The methods take models f as the rows of F, (repeats, d).

    parts : the rows in groups of equal weight.
    rho : the weight of R: `regularization` / N for one site, and `regularization` for all sites together.
    """

    def __init__(
        self, parts: tuple[WeightedRows, ...], *, loss: Loss, rho: float, regularizer: Regularizer
    ) -> None:
        self.parts = parts
        self.loss = loss
        self.rho = rho
        self.regularizer = regularizer
        self.dimension = parts[0].rows.dimension
        self.largest_norm = max(part.rows.norm for part in parts)
        self._blocks: tuple[int, Sequence[Block]] | None = None

    def hold(self, parts: tuple[WeightedRows, ...]) -> None:
        """Replace the rows by equal rows stored elsewhere, for example in an array for many sites."""
        self.parts, self._blocks = parts, None

    def hold_rows(self) -> None:
        """Compute lazy rows and store them, for a solver that reads the rows many times."""
        parts = tuple(replace(part, rows=part.rows.held()) for part in self.parts)
        if any(new.rows is not old.rows for new, old in zip(parts, self.parts, strict=True)):
            self.hold(parts)

    def blocks(self, repeats: int) -> Sequence[Block]:
        """The rows, cut into blocks of a size that suits this number of models. The blocks are cached."""
        if self._blocks is None or self._blocks[0] != repeats:
            self._blocks = repeats, row_blocks(self.parts, repeats)
        return self._blocks[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_blocks": None}  # pickled views would store the rows a second time

    @property
    def strong(self) -> float:
        """The strong convexity constant of the regularisation term rho R(f)."""
        return self.rho * self.regularizer.strong_convexity

    @cached_property
    def smoothness(self) -> float:
        """M, a Lipschitz constant of the gradient: rho sup R'' + sup L'' sum_parts weight lambda_max(X'X)."""
        bends = (part.weight * largest_eigenvalue(part.rows.matrix) for part in self.parts)
        return self.rho * self.regularizer.curvature_bound + self.loss.curvature_bound * sum(bends)

    def value(self, F: Array) -> Array:
        """O(f) for every model f (a row of F), as an array (repeats,)."""
        total = self.rho * self.regularizer.value(F)
        for block in self.blocks(len(F)):
            total = total + block.weight * np.sum(self.loss.value(block.margins(F.T)), axis=0)
        return np.asarray(total)

    def gradient(self, F: Array) -> Array:
        """The gradient of O at every model f (a row of F), as an array (repeats, d)."""
        total = self.rho * self.regularizer.gradient(F)
        for block in self.blocks(len(F)):
            slope = self.loss.slope(block.margins(F.T))
            total = total + block.weight * (block.ZT @ slope).T
        return np.asarray(total)

    def hessian(self, f: Array) -> Array:
        """The d x d matrix of second derivatives at one model f, (d,)."""
        total = np.diag(self.rho * self.regularizer.curvature(f[None, :])[0])
        for block in self.blocks(self.dimension):
            curvature = self.loss.curvature(block.margins(f[:, None]))[:, 0]
            total += block.gram(block.weight * curvature)
        return np.asarray(total)


class LocalObjective(Objective):
    """The objective of one site, O(f) = (C/B) sum_n w_n L(z_n) + (rho/N) R(f), with the site's rows.

    weights, count : without `weights`, every w_n is 1 and B is the number of rows. With `weights`, B is the
        public number `count`. If the guarantee is for persons, the weights of a person's rows add up to at
        most 1, and B is the number of persons.
    overwrite : True if the caller no longer needs a dense X, so that X may be changed in place.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        loss: Loss,
        C: float,
        regularization: float,
        sites: int,
        regularizer: Regularizer | None = None,
        name: str = "the site",
        weights: Any = None,
        count: int | None = None,
        overwrite: bool = False,
    ) -> None:
        regularizer = L2() if regularizer is None else regularizer
        check_loss(loss)
        check_regularizer(regularizer)
        C = checks.positive("C", C)
        rho = checks.positive("regularization", regularization)
        rows = signed_rows(X, y, loss.kind, site=name, overwrite=overwrite)
        if (weights is None) != (count is None):
            raise ParameterError("`weights` and `count` must be given together.")
        self.samples = rows.samples if count is None else checks.whole("count", count, least=1)
        if C > self.samples:
            raise ParameterError(
                f"`C` must not exceed the number of samples, {self.samples} at {name}; got {C:g}."
            )
        super().__init__(
            weighted_parts(rows, weights, C / self.samples, site=name),
            loss=loss,
            rho=rho / checks.whole("sites", sites, least=1),
            regularizer=regularizer,
        )
        self._unit = C / self.samples

    @property
    def rows(self) -> int:
        """The number of rows with a weight above 0."""
        return sum(part.rows.samples for part in self.parts)

    def row_weights(self) -> Array:
        """The weight w_n of every stored row, in order; rows of weight 0 are not stored."""
        return np.concatenate([np.full(part.rows.samples, part.weight / self._unit) for part in self.parts])

    def metrics(self, F: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of every model on this site's rows; both are weighted means.

        For classification, the quality is the accuracy, and a row with z = 0 counts as half correct. For
        regression, the quality is the mean absolute error.
        """
        loss, quality = np.zeros(len(F)), np.zeros(len(F))
        Ft, classify = np.ascontiguousarray(F.T), self.loss.kind == "classification"
        for block in self.blocks(len(F)):
            z = block.margins(Ft)
            ones = np.full(len(z), block.weight / self._unit)  # BLAS sums faster than np.sum
            loss += ones @ self.loss.value(z)
            quality += ones @ (np.sign(z) if classify else np.abs(z))
        total = sum(part.weight / self._unit * part.rows.samples for part in self.parts)
        quality /= total
        return loss / total, 0.5 * (1.0 + quality) if classify else quality

    def __repr__(self) -> str:
        shown = repr(self.parts[0].rows) if len(self.parts) == 1 else f"{self.rows} weighted rows"
        return f"LocalObjective({self.loss!r}, {shown})"


def largest_eigenvalue(Z: Matrix) -> float:
    """An upper bound on lambda_max(Z'Z). If Z is large, it is valid only if Lanczos finds this eigenvalue."""
    samples, dimension = Z.shape
    if min(samples, dimension) <= _SMALL:
        product = Z.T @ Z if dimension <= samples else Z @ Z.T
        gram = product if isinstance(product, np.ndarray) else product.toarray()
        return max(0.0, float(np.linalg.eigvalsh(gram)[-1])) * (1 + 1e-12)

    def apply(v: Array) -> Array:
        return np.asarray(Z.T @ (Z @ v))

    operator = LinearOperator((dimension, dimension), matvec=apply, dtype=np.float64)
    start = np.full(dimension, 1.0) + 0.1 * np.cos(np.arange(dimension))  # fixed: results are reproducible
    values, vectors = eigsh(operator, k=1, v0=start, tol=1e-10)
    top, v = float(values[0]), vectors[:, 0]
    return top + float(np.linalg.norm(apply(v) - top * v)) + 1e-9 * top
