"""The objective of a site: O(f) = (C/B) sum_n L(z_n) + (rho/N) R(f), for many models f at once."""

from __future__ import annotations

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

_SMALL = 400  # rows or features up to which all eigenvalues are computed; Lanczos beyond


class Objective:
    """O(f) = sum over parts of weight sum_n L(z_n) + rho R(f). Models are the rows of F, (repeats, d)."""

    def __init__(
        self, parts: tuple[WeightedRows, ...], *, loss: Loss, rho: float, regularizer: Regularizer
    ) -> None:
        self.parts = parts
        self.loss = loss
        self.rho = rho
        self.regularizer = regularizer
        self.dimension = parts[0].rows.dimension
        self.largest_norm = max(part.rows.norm for part in parts)
        self._blocks: tuple[int, list[Block]] | None = None

    def hold(self, parts: tuple[WeightedRows, ...]) -> None:
        """Hold the same rows somewhere else: as views of an array that has those of other sites too."""
        self.parts, self._blocks = parts, None

    def blocks(self, repeats: int) -> list[Block]:
        """The rows in blocks for so many models at a time; views, kept for the next call."""
        if self._blocks is None or self._blocks[0] != repeats:
            self._blocks = repeats, row_blocks(self.parts, repeats)
        return self._blocks[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_blocks": None}  # a copied view would hold the rows a second time

    @property
    def strong(self) -> float:
        """The strong convexity that R alone gives."""
        return self.rho * self.regularizer.strong_convexity

    @cached_property
    def smoothness(self) -> float:
        """M: the gradient is Lipschitz with rho R'' + weight c1 lambda_max(X'X), summed over the parts."""
        bends = (part.weight * largest_eigenvalue(part.rows.Z) for part in self.parts)
        return self.rho * self.regularizer.curvature_bound + self.loss.curvature_bound * sum(bends)

    def value(self, F: Array) -> Array:
        """O at every model, (repeats,)."""
        total = self.rho * self.regularizer.value(F)
        for block in self.blocks(len(F)):
            total = total + block.weight * np.sum(self.loss.value(block.margins(F.T)), axis=0)
        return np.asarray(total)

    def gradient(self, F: Array) -> Array:
        """The gradient of O at every model, (repeats, d)."""
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
    """O(f) = (C/B) sum_n w_n L(z_n) + (rho/N) R(f) of one site, which holds the only copy of its rows.

    Without `weights` every w is 1 and B the number of rows. With them, `count` is B, a public number: rows
    that belong to a person have weights that add up to at most 1, and B is the number of persons.
    `overwrite` : dense rows were made for this objective alone, which may keep them in their place.
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
                f"`C` must not exceed the {self.samples} samples of {name}; got {C:g}. Lower C."
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
        """How many rows there are, weighted or not."""
        return sum(part.rows.samples for part in self.parts)

    def row_weights(self) -> Array:
        """w of every row, in the order in which the rows are held."""
        return np.concatenate([np.full(part.rows.samples, part.weight / self._unit) for part in self.parts])

    def metrics(self, F: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of every model on this site's rows, in one pass; means are weighted.

        Quality is the accuracy for classification, a tie z = 0 counting half, and the mean absolute error
        for regression.
        """
        loss, quality = np.zeros(len(F)), np.zeros(len(F))
        Ft, classify = np.ascontiguousarray(F.T), self.loss.kind == "classification"
        for block in self.blocks(len(F)):
            z = block.margins(Ft)
            ones = np.full(len(z), block.weight / self._unit)  # BLAS sums faster than NumPy
            loss += ones @ self.loss.value(z)
            quality += ones @ (np.sign(z) if classify else np.abs(z))
        total = sum(part.weight / self._unit * part.rows.samples for part in self.parts)
        quality /= total
        return loss / total, 0.5 * (1.0 + quality) if classify else quality

    def __repr__(self) -> str:
        shown = repr(self.parts[0].rows) if len(self.parts) == 1 else f"{self.rows} weighted rows"
        return f"LocalObjective({self.loss!r}, {shown})"


def largest_eigenvalue(Z: Matrix) -> float:
    """lambda_max(Z'Z), rounded up by what the method may miss. Signs of rows do not matter."""
    samples, dimension = Z.shape
    if min(samples, dimension) <= _SMALL:
        product = Z.T @ Z if dimension <= samples else Z @ Z.T
        gram = product if isinstance(product, np.ndarray) else product.toarray()
        return max(0.0, float(np.linalg.eigvalsh(gram)[-1])) * (1 + 1e-12)

    def apply(v: Array) -> Array:
        return np.asarray(Z.T @ (Z @ v))

    operator = LinearOperator((dimension, dimension), matvec=apply, dtype=np.float64)
    start = np.full(dimension, 1.0) + 0.1 * np.cos(np.arange(dimension))  # fixed, so that runs repeat
    values, vectors = eigsh(operator, k=1, v0=start, tol=1e-10)
    top, v = float(values[0]), vectors[:, 0]
    return top + float(np.linalg.norm(apply(v) - top * v)) + 1e-9 * top
