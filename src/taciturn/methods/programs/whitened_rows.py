"""The private half of whitened descent, a site's share of each sum: its only code that sees rows.

Rows are multiplied by W block by block and never kept: a gradient is summed over the rows as they are, and
only the sum is taken to the coordinates. Of every row its length there is kept, one number.
"""

from __future__ import annotations

import numpy as np

from ...core.types import Array
from ...kernels.clipped_sums import dense_sum, sparse_sum
from ...objective.local import LocalObjective
from ...privacy.sums import SumFacts
from ..sums.sum_noise import Integers
from ..sums.sums import to_integers
from .coordinates import Coordinates, WhitenedQuery
from .descent_rows import check_constant, triangle, weighted_blocks


class WhitenedShare:
    """The share of one site in every sum."""

    def __init__(self, objective: LocalObjective, total: int, constant: float | None) -> None:
        self.objective, self.total = objective, float(total)
        self.weights = objective.row_weights()
        self._lengths: dict[int, tuple[Coordinates, Array]] = {}
        for part in objective.parts:
            check_constant(part.rows.Z, constant)

    def integers(self, query: WhitenedQuery, facts: SumFacts) -> Integers:
        """The answer to a query, in whole steps of the grid."""
        if query.points is None:
            if query.coordinates[0].plain:
                return to_integers(self.moments(query.coordinates[0])[None], facts.grid)
            shares = [self.moments(at) for at in query.coordinates]
        else:
            pairs = enumerate(zip(query.coordinates, query.points, strict=True))
            shares = [self.gradient(at, f, self._row_lengths(at, k)) for k, (at, f) in pairs]
        return to_integers(np.stack(shares), facts.grid)

    def metrics(self, models: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of models (repeats, d) on the site's own rows."""
        return self.objective.metrics(models)

    def moments(self, at: Coordinates) -> Array:
        """sum omega x~ x~' / (cap n), as a triangle; a unit's part has norm at most 1 / n."""
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

    def gradient(self, at: Coordinates, f: Array, lengths: Array) -> Array:
        """-sum y psi x~ / (q n) at f; a unit's part has norm at most 1 / n."""
        summed, first = np.zeros_like(f), 0
        limits = np.minimum(1.0, at.q / np.maximum(lengths, 1e-100))
        for part in self.objective.parts:
            Z, own = part.rows.Z, slice(first, first + part.rows.samples)
            if isinstance(Z, np.ndarray):
                summed += dense_sum(Z, f, limits[own], self.weights[own])
            else:
                summed += sparse_sum(Z.data, Z.indices, Z.indptr, f, limits[own], self.weights[own])
            first = own.stop
        return -(at.W.T @ summed) / (at.q * self.total)

    def _row_lengths(self, at: Coordinates, repeat: int) -> Array:
        """r = ||W'x|| of every row, computed once for these coordinates."""
        kept = self._lengths.get(repeat)
        if kept is None or kept[0] is not at:
            blocks = self.objective.blocks(1)
            found = [np.linalg.norm(np.asarray(block.Z @ at.W), axis=1) for block in blocks]
            kept = self._lengths[repeat] = at, np.concatenate(found)
        return kept[1]
