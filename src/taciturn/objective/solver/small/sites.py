"""The rule that decides which sites are small, and the class `Pack`, which stores the rows of small sites.

The objective of a small site is minimised by a compiled function, a kernel: by `kernel.py` if the rows are
dense (Newton steps by Cholesky factors), and by `sparse_kernel.py` if the rows are sparse (Newton steps by
conjugate gradients). The rule is fixed, so that simulations and real sites use the same solver and get the
same bits. Its limits were chosen for one to ten repeats (independent runs). For larger sites, the general
solver is faster, because each of its matrix products serves all repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ....core.types import Array
from ...blocks import WeightedRows
from ...local import Objective
from ...losses import LogCosh, Logistic, Loss, SmoothHinge
from ...regularizers import L2
from ...rows import LazyMatrix, Rows

if TYPE_CHECKING:
    from .slopes import LossCode

Form = Literal["dense", "sparse"]

MOST_WORK = 220_000
"""A dense site is small only if k^2 (rows + 2 k), the cost of a Newton step, is at most this number, where k
is min(rows, features)."""
MOST_ENTRIES = 50_000
"""A dense site is small only if rows times features is at most this number."""
MOST_STORED = 8_192
"""The largest number of stored entries of a small sparse site."""
MOST_FEATURES = 2_048
"""The largest number of features of a small sparse site."""


def small_form(objective: Objective) -> Form | None:
    """The kernel for the site with this objective, "dense" or "sparse"; None if the general solver is used.

    The general solver is used in each of these cases: the site is not small, its rows have different weights,
    the loss is not one of those in `_code`, or the regulariser is not `L2`.
    """
    if len(objective.parts) != 1 or type(objective.regularizer) is not L2 or _code(objective.loss) is None:
        return None
    rows = objective.parts[0].rows
    if isinstance(rows.Z, LazyMatrix):
        return None  # rows that are computed when needed; only large sites have them
    if isinstance(rows.Z, np.ndarray):
        return "dense" if is_small_size(rows.samples, rows.dimension) else None
    return "sparse" if rows.Z.nnz <= MOST_STORED and rows.dimension <= MOST_FEATURES else None


def is_small(objective: Objective) -> bool:
    """Whether a kernel solves the site with this objective."""
    return small_form(objective) is not None


def is_small_size(rows: int, dimension: int) -> bool:
    """Whether a dense site of this size is small.

    >>> is_small_size(20, 10), is_small_size(40, 105), is_small_size(400, 105)
    (True, True, False)
    """
    k = min(rows, dimension)
    return k * k * (rows + 2 * k) <= MOST_WORK and rows * dimension <= MOST_ENTRIES


def loss_code(loss: Loss) -> LossCode:
    """The numbers that describe the loss to the kernels. Raises if no kernel supports the loss."""
    from .slopes import LossCode  # imported here, because this loads numba, which is slow

    code, width = _code(loss), getattr(loss, "h", getattr(loss, "scale", 1.0))
    if code is None:
        raise TypeError(f"no compiled kernel supports the loss {type(loss).__name__}.")
    return LossCode(code, width, loss.curvature_bound, getattr(loss, "shift", 0.0))


def _code(loss: Loss) -> int | None:
    """0 for `Logistic`, 1 for `SmoothHinge`, 2 for `LogCosh`; None for all other classes."""
    kinds = (Logistic, SmoothHinge, LogCosh)
    return kinds.index(type(loss)) if type(loss) in kinds else None


@dataclass(frozen=True, eq=False)
class Pack:
    """The rows of many sites, one site after the other. Site i has the rows first[i] to first[i + 1] - 1.

    arrays : the rows as one dense array, or in CSR form as three arrays (entries, columns, row pointers).
    offset : the offset of each row, a constant in the row's margin; empty if the loss has no offsets.
    facts : an array (sites, 4). The columns are the weight of a row of the site, max ||x||, max |offset|, and
        the largest number of entries in a row.
    strong : (sites,), the strong convexity constant of each objective.
    """

    loss: Loss
    arrays: tuple[Any, ...]
    offset: Array
    first: NDArray[np.int64]
    facts: Array
    strong: Array

    def minimise(self, curvature: Array, linear: Array, start: Array, tol: float) -> tuple[Array, Array]:
        """(f, bound): the minimisers, (sites, repeats, d), and upper bounds on the gradients' norms at f.

        Each f minimises the objective of its site plus (curvature / 2) ||f||^2 - <linear, f>. If the bound
        of a site and repeat is at most (strong + curvature) tol, this f is within `tol` of the exact
        minimiser. The kernel may return a larger bound, so the caller has to check it.
        """
        strong = self.strong + curvature
        facts = np.column_stack([self.facts, strong, strong * tol])
        f, bound = start.copy(), np.empty(start.shape[:2])
        numbers = np.ascontiguousarray(linear), f, bound
        with np.errstate(all="ignore"):
            self._kernels()[0](loss_code(self.loss), *self.arrays, self.offset, self.first, facts, *numbers)
        return f, bound

    def metrics(self, f: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of every site and repeat; the quality is accuracy or mean absolute error."""
        losses, qualities = np.empty((2, *f.shape[:2]))
        law, numbers = loss_code(self.loss), (np.ascontiguousarray(f), losses, qualities)
        classify = self.loss.kind == "classification"
        with np.errstate(all="ignore"):
            self._kernels()[1](law, classify, *self.arrays, self.offset, self.first, *numbers)
        return losses, qualities

    def part(self, start: int, stop: int) -> Self:
        """The pack of sites start, ..., stop - 1; the rows are not copied."""
        some = slice(start, stop)
        return replace(
            self,
            first=self.first[start : stop + 1],
            facts=self.facts[some],
            strong=self.strong[some],
        )

    def view(self, piece: slice, own: Rows) -> Any:
        """The matrix Z of one site's rows, made of views of the pack's arrays; no entries are copied.

        piece : the indices of the site's rows in the pack.
        own : the rows that the site itself stores. A sparse Z takes its shape and row pointers from them.
        """
        if len(self.arrays) == 1:
            return self.arrays[0][piece]
        entries, columns, pointers = self.arrays
        some = slice(pointers[piece.start], pointers[piece.stop])
        Z: Any = sparse.csr_array(own.Z.shape, dtype=np.float64)
        Z.data, Z.indices, Z.indptr = entries[some], columns[some], _csr(own).indptr
        return Z

    def _kernels(self) -> tuple[Any, Any]:
        """The compiled functions for `minimise` and for `metrics`; this imports numba."""
        if len(self.arrays) == 1:
            from .kernel import measure_sites, minimise_sites

            return minimise_sites, measure_sites
        from .sparse_kernel import measure_sparse_sites, minimise_sparse_sites

        return minimise_sparse_sites, measure_sparse_sites


def pack(objectives: Sequence[Objective]) -> Pack:
    """Join the rows of small sites, all dense or all sparse, in a `Pack`.

    If there are several objectives, each of them afterwards stores views of the pack's arrays in place of its
    own arrays, so that no row is in memory twice.
    """
    held = [objective.parts[0].rows for objective in objectives]
    parts = [objective.parts[0] for objective in objectives]
    if small_form(objectives[0]) == "dense":
        arrays: tuple[Any, ...] = (_join([rows.Z for rows in held]),)
    else:
        entries = _join([_csr(rows).data for rows in held])
        columns = _join([_csr(rows).indices for rows in held]).astype(np.int32, copy=False)
        counts = np.concatenate([[0], *(np.diff(_csr(rows).indptr) for rows in held)])
        arrays = entries, columns, np.cumsum(counts, dtype=np.int64)
    made = Pack(
        loss=objectives[0].loss,
        arrays=arrays,
        offset=_NONE if held[0].offset is None else _join([rows.offset for rows in held]),
        first=np.cumsum([0, *(rows.samples for rows in held)], dtype=np.int64),
        facts=np.array([(p.weight, p.rows.norm, p.rows.largest_offset, p.rows.width) for p in parts]),
        strong=np.array([objective.strong for objective in objectives]),
    )
    for i, objective in enumerate(objectives if len(objectives) > 1 else ()):  # give each objective a view
        part, piece = objective.parts[0], slice(made.first[i], made.first[i + 1])
        offset = None if part.rows.offset is None else made.offset[piece]
        held_here = replace(part.rows, Z=made.view(piece, part.rows), offset=offset)
        objective.hold((WeightedRows(held_here, part.weight),))
    return made


def _csr(rows: Rows) -> sparse.csr_array:
    Z = rows.matrix
    if isinstance(Z, np.ndarray):
        raise TypeError("the sites of one pack must all be sparse, or all dense.")
    return Z


def _join(pieces: list[Any]) -> Any:
    """The pieces as one read-only array, without a copy if they are consecutive views of one array."""
    whole = pieces[0] if len(pieces) == 1 else pieces[0].base
    found = whole is not None and _consecutive(pieces, whole)
    joined = whole.view() if found else np.concatenate(pieces)
    joined.flags.writeable = False
    return joined


def _consecutive(pieces: list[Any], whole: Any) -> bool:
    if len(whole) != sum(map(len, pieces)) or whole.shape[1:] != pieces[0].shape[1:]:
        return False
    address, step = whole.ctypes.data, whole.strides[0]
    for piece in pieces:
        if piece.ctypes.data != address:
            return False
        address += step * len(piece)
    return True


_NONE = np.empty(0)
_NONE.flags.writeable = False
