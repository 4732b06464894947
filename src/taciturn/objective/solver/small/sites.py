"""The rule that decides which sites are small. It is fixed, so that simulations and real sites use the same
solver and get the same bits.

Sites with dense rows use `kernel.py` (Newton with Cholesky), sites with sparse rows use `sparse_kernel.py`
(Newton with conjugate gradients). The limits were chosen for one to ten repeats: for larger sites, matrix
products for all repeats at once are faster than the kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from ...local import Objective
from ...losses import LogCosh, Logistic, Loss, SmoothHinge
from ...regularizers import L2
from ...rows import LazyMatrix

if TYPE_CHECKING:
    from .slopes import LossCode

Form = Literal["dense", "sparse"]

MOST_WORK = 220_000
"""The largest cost of a Newton step, k^2 (rows + 2 k) with k = min(rows, features), of a small dense site."""
MOST_ENTRIES = 50_000
"""The largest number of entries, rows times features, of a small dense site."""
MOST_STORED = 8_192
"""The largest number of stored entries of a small sparse site."""
MOST_FEATURES = 2_048
"""The largest number of features of a small sparse site."""


def small_form(objective: Objective) -> Form | None:
    """Which kernel solves a site; None for the general solver.

    The general solver is for large sites, rows of different weights, squared losses, and losses or
    regularisers that a user wrote.
    """
    if len(objective.parts) != 1 or type(objective.regularizer) is not L2 or _code(objective.loss) is None:
        return None
    rows = objective.parts[0].rows
    if isinstance(rows.Z, LazyMatrix):
        return None  # rows are lazy only at large sites
    if isinstance(rows.Z, np.ndarray):
        return "dense" if is_small_size(rows.samples, rows.dimension) else None
    return "sparse" if rows.Z.nnz <= MOST_STORED and rows.dimension <= MOST_FEATURES else None


def is_small(objective: Objective) -> bool:
    """Whether one of the kernels solves a site."""
    return small_form(objective) is not None


def is_small_size(rows: int, dimension: int) -> bool:
    """Whether a dense site of this size is small.

    >>> is_small_size(20, 10), is_small_size(40, 105), is_small_size(400, 105)
    (True, True, False)
    """
    k = min(rows, dimension)
    return k * k * (rows + 2 * k) <= MOST_WORK and rows * dimension <= MOST_ENTRIES


def loss_code(loss: Loss) -> LossCode:
    """A loss that the kernels know, as numbers that the kernels can read."""
    from .slopes import LossCode  # imported here, because it loads numba, which is slow

    code, width = _code(loss), getattr(loss, "h", getattr(loss, "scale", 1.0))
    if code is None:
        raise TypeError(f"no compiled kernel supports the loss {type(loss).__name__}.")
    return LossCode(code, width, loss.curvature_bound, getattr(loss, "shift", 0.0))


def _code(loss: Loss) -> int | None:
    """The number of a loss in the kernels; None for other losses, also for subclasses of these losses."""
    kinds = (Logistic, SmoothHinge, LogCosh)
    return kinds.index(type(loss)) if type(loss) in kinds else None
