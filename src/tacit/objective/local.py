"""What a site minimises: O(f) = (C/B) sum_n L(z_n) + (rho/N) R(f), for many models f at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..errors import ParameterError
from .checking import check_loss, check_regularizer
from .losses import Loss
from .regularizers import L2, Regularizer
from .rows import Matrix, Rows, signed_rows
from .spectrum import largest_eigenvalue

Array = NDArray[np.float64]

_BLOCK = 1_000_000  # entries of Z times models in one block: what stays in cache


@dataclass(frozen=True, eq=False)
class Part:
    """weight * sum_n L(z_n) over some rows."""

    rows: Rows
    weight: float


class Objective:
    """O(f) = sum over parts of weight sum_n L(z_n) + rho R(f). Models are the rows of F, (repeats, d)."""

    def __init__(self, parts: tuple[Part, ...], *, loss: Loss, rho: float, regularizer: Regularizer) -> None:
        self.parts = parts
        self.loss = loss
        self.rho = rho
        self.regularizer = regularizer
        self.dimension = parts[0].rows.dimension
        self.row_norm = max(part.rows.norm for part in parts)

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
        for Z, offset, weight in self.blocks(len(F)):
            total = total + weight * np.sum(self.loss.value(margins(Z, offset, F)), axis=0)
        return np.asarray(total)

    def gradient(self, F: Array) -> Array:
        """The gradient of O at every model, (repeats, d)."""
        total = self.rho * self.regularizer.gradient(F)
        for Z, offset, weight in self.blocks(len(F)):
            slope = self.loss.slope(margins(Z, offset, F))
            total = total + weight * (Z.T @ slope).T
        return np.asarray(total)

    def hessian(self, f: Array) -> Array:
        """The d x d matrix of second derivatives at one model f, (d,)."""
        F = f[None, :]
        total = np.diag(self.rho * self.regularizer.curvature(F)[0])
        for Z, offset, weight in self.blocks(self.dimension):
            curvature = weight * self.loss.curvature(margins(Z, offset, F))[:, 0]
            if isinstance(Z, np.ndarray):
                total += Z.T @ (curvature[:, None] * Z)
            else:
                total += (Z.T @ Z.multiply(curvature[:, None])).toarray()
        return np.asarray(total)

    def blocks(self, repeats: int) -> Iterator[tuple[Matrix, Array | None, float]]:
        """(Z, offset, weight) for a few rows at a time, so that products and slopes stay in cache."""
        step = max(64, _BLOCK // (self.dimension * repeats))
        for part in self.parts:
            rows = part.rows
            for start in range(0, rows.samples, step):
                stop = min(start + step, rows.samples)
                offset = None if rows.offset is None else rows.offset[start:stop]
                yield rows.Z[start:stop], offset, part.weight


class LocalObjective(Objective):
    """O(f) = (C/B) sum_n L(z_n) + (rho/N) R(f) of one site, which holds the only copy of its rows."""

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
    ) -> None:
        regularizer = L2() if regularizer is None else regularizer
        check_loss(loss)
        check_regularizer(regularizer)
        C = checks.positive("C", C)
        rho = checks.positive("regularization", regularization)
        rows = signed_rows(X, y, loss.kind, site=name)
        if C > rows.samples:
            raise ParameterError(
                f"`C` must not exceed the {rows.samples} samples of {name}; got {C:g}. Lower C."
            )
        part = Part(rows, C / rows.samples)
        super().__init__(
            (part,), loss=loss, rho=rho / checks.whole("sites", sites, least=1), regularizer=regularizer
        )
        self.samples = rows.samples

    def metrics(self, F: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of every model on this site's rows, in one pass.

        Quality is the accuracy for classification, a tie z = 0 counting half, and the mean absolute error
        for regression.
        """
        loss, quality = np.zeros(len(F)), np.zeros(len(F))
        for Z, offset, _ in self.blocks(len(F)):
            z = margins(Z, offset, F)
            loss += np.sum(self.loss.value(z), axis=0)
            if self.loss.kind == "classification":
                quality += 0.5 * np.sum(1.0 + np.sign(z), axis=0)
            else:
                quality += np.sum(np.abs(z), axis=0)
        return loss / self.samples, quality / self.samples

    def __repr__(self) -> str:
        return f"LocalObjective({self.loss!r}, {self.parts[0].rows!r})"


def margins(Z: Matrix, offset: Array | None, F: Array) -> Array:
    """z = offset + Z f for every row and model, (rows, repeats)."""
    z = np.asarray(Z @ F.T)
    if offset is not None:
        z += offset[:, None]
    return z
