"""The private half of whitened descent: a site's share of each sum. No other code of the descent sees rows.

W transforms a row to whitened coordinates (coordinates.py). Products of rows and W are computed block by
block and not stored; only the bound on each row's slope is stored. A gradient is summed over the original
rows, and only the sum is transformed with W.
"""

from __future__ import annotations

import numpy as np

from ...core.types import Array
from ...kernels.clipped_sums import add_dense, add_sparse
from ...objective.local import LocalObjective
from ...objective.rows import row_pieces
from ...privacy.sums import SumFacts
from ..sums.sum_noise import Integers
from ..sums.sums import to_integers
from .coordinates import Coordinates, WhitenedQuery
from .descent_rows import check_constant, triangle, weighted_blocks


class WhitenedShare:
    """The private half of one site: its share of every sum."""

    def __init__(self, objective: LocalObjective, total: int, constant: float | None) -> None:
        self.objective, self.total = objective, float(total)
        self.weights = objective.row_weights()
        self._kept: dict[int, tuple[Coordinates, Array]] = {}
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
            shares = [self.gradient(at, f, self._limits(at, k)) for k, (at, f) in pairs]
        return to_integers(np.stack(shares), facts.grid)

    def metrics(self, models: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of models (repeats, d) on the site's own rows."""
        return self.objective.metrics(models)

    def moments(self, at: Coordinates) -> Array:
        """sum omega x~ x~' / (cap n), as a triangle. A record or person adds a norm of at most 1 / n."""
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
        """-sum y psi x~ / (q n) at f. A record or person adds a norm of at most 1 / n."""
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
        """The bound min(1, q / r) on each row's slope, r = ||W'x||; computed once for these coordinates."""
        kept = self._kept.get(repeat)
        if kept is None or kept[0] is not at:
            blocks = self.objective.blocks(1)
            found = [np.linalg.norm(np.asarray(block.Z @ at.W), axis=1) for block in blocks]
            lengths = np.concatenate(found)
            kept = self._kept[repeat] = at, np.minimum(1.0, at.q / np.maximum(lengths, 1e-100))
        return kept[1]
