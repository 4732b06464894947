"""Which sites are small, and all of them in a few arrays, as the kernel takes them.

A rule of the site's rows and features, so that every engine, and a real site, choose alike and get the same
bits. It is made for one to ten repeats: beyond it, matrix products for all repeats at once are quicker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....types import Array
from ...blocks import WeightedRows
from ...local import Objective
from ...losses import LogCosh, Logistic, Loss, SmoothHinge
from ...regularizers import L2

if TYPE_CHECKING:
    from .slopes import Law

MOST_WORK = 100_000
"""rows x min(rows, features)^2, about what a Newton step costs."""
MOST_ENTRIES = 50_000
"""rows x features."""


def is_small(objective: Objective) -> bool:
    """Whether the kernel solves it: a few dense rows, a shipped loss, the regulariser ||f||^2 / 2."""
    if len(objective.parts) != 1 or type(objective.regularizer) is not L2 or _code(objective.loss) is None:
        return False
    rows = objective.parts[0].rows
    return isinstance(rows.Z, np.ndarray) and is_small_size(rows.samples, rows.dimension)


def is_small_size(rows: int, dimension: int) -> bool:
    """Whether a dense site of this size is small.

    >>> is_small_size(20, 10), is_small_size(40, 105), is_small_size(400, 105)
    (True, True, False)
    """
    return rows * min(rows, dimension) ** 2 <= MOST_WORK and rows * dimension <= MOST_ENTRIES


@dataclass(frozen=True, eq=False)
class Pack:
    """Small sites of one problem. The rows of site i are Z[first[i] : first[i + 1]]; so are the offsets.

    facts : (sites, 3), each site's weight, max ||x|| and max |offset|.
    strong : (sites,), the strong convexity of each objective.
    """

    loss: Loss
    Z: Array
    offset: Array  # of no entry where the loss has none
    first: NDArray[np.int64]
    facts: Array
    strong: Array

    @classmethod
    def of(cls, objectives: Sequence[Objective]) -> Pack:
        """Put the rows of small sites one after the other; the objectives then hold views of them."""
        parts = [objective.parts[0] for objective in objectives]
        counts = [part.rows.samples for part in parts]
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        Z, offset = _together(objectives, first)
        facts = [(part.weight, part.rows.norm, part.rows.largest_offset) for part in parts]
        strong = np.array([objective.strong for objective in objectives])
        return cls(objectives[0].loss, Z, offset, first, np.array(facts), strong)

    def part(self, start: int, stop: int) -> Pack:
        """Sites start, ..., stop - 1; their rows are not copied."""
        rows = slice(self.first[start], self.first[stop])
        return replace(
            self,
            Z=self.Z[rows],
            offset=self.offset[rows],
            first=self.first[start : stop + 1] - self.first[start],
            facts=self.facts[start:stop],
            strong=self.strong[start:stop],
        )

    def minimise(self, curvature: Array, linear: Array, start: Array, tol: float) -> tuple[Array, Array]:
        """(f, a bound on the norm of the gradient there) of every site and repeat; f (sites, repeats, d).

        Where the bound is above (strong + curvature) tol, floats could not certify more in this way.
        """
        from .kernel import minimise_sites  # numba: only those who have a small site wait for it

        strong = self.strong + curvature
        facts = np.column_stack([self.facts, strong, strong * tol])
        f, bound = start.copy(), np.empty(start.shape[:2])
        with np.errstate(all="ignore"):
            minimise_sites(self._law(), self.Z, self.offset, self.first, facts, linear, f, bound)
        return f, bound

    def metrics(self, f: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of every site and repeat, as `LocalObjective.metrics` has them."""
        from .kernel import measure_sites

        classify = self.loss.kind == "classification"
        losses, qualities = np.empty((2, *f.shape[:2]))
        with np.errstate(all="ignore"):
            measure_sites(self._law(), classify, self.Z, self.offset, self.first, f, losses, qualities)
        return losses, qualities

    def _law(self) -> Law:
        from .slopes import Law

        width = getattr(self.loss, "h", getattr(self.loss, "scale", 1.0))
        code = _code(self.loss)
        assert code is not None, "is_small"
        return Law(code, width, self.loss.curvature_bound, getattr(self.loss, "shift", 0.0))


def _code(loss: Loss) -> int | None:
    """Which of the kernel's losses this is; None for one's own, subclasses of the shipped ones included."""
    kinds = (Logistic, SmoothHinge, LogCosh)
    return kinds.index(type(loss)) if type(loss) in kinds else None


def _together(objectives: Sequence[Objective], first: NDArray[np.int64]) -> tuple[Array, Array]:
    """All rows in one array, of which each objective then holds its piece, and all offsets."""
    held = [objective.parts[0].rows for objective in objectives]
    matrices = [rows.Z for rows in held if isinstance(rows.Z, np.ndarray)]
    offsets = [rows.offset for rows in held if rows.offset is not None]
    Z, offset = _consecutive(matrices), _consecutive(offsets) if offsets else _NONE
    if Z is not None and offset is not None:
        return Z, offset
    Z, offset = np.concatenate(matrices), np.concatenate(offsets) if offsets else _NONE
    Z.flags.writeable = offset.flags.writeable = False
    for i, (objective, rows) in enumerate(zip(objectives, held, strict=True)):
        piece = slice(first[i], first[i + 1])
        moved = replace(rows, Z=Z[piece], offset=None if rows.offset is None else offset[piece])
        objective.hold((WeightedRows(moved, objective.parts[0].weight),))
    return Z, offset


def _consecutive(pieces: list[Array]) -> Array | None:
    """The array that these are consecutive pieces of, from a run before this one; None where they are not."""
    whole = pieces[0] if len(pieces) == 1 else pieces[0].base
    if whole is None or len(whole) != sum(map(len, pieces)) or whole.shape[1:] != pieces[0].shape[1:]:
        return None
    address, step = whole.ctypes.data, whole.strides[0]
    for piece in pieces:
        if piece.ctypes.data != address:
            return None
        address += step * len(piece)
    return whole


_NONE = np.empty(0)
_NONE.flags.writeable = False
