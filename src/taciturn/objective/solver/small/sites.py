"""Which sites are small: a fixed rule, so that all engines, and a real site, choose alike and get equal bits.

Dense rows are solved by Newton's method (`kernel.py`), sparse ones with conjugate gradients
(`sparse_kernel.py`). The limits are made for one to ten repeats: beyond them, matrix products for all repeats
at once are quicker than either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from ...local import Objective
from ...losses import LogCosh, Logistic, Loss, SmoothHinge
from ...regularizers import L2

if TYPE_CHECKING:
    from .slopes import LossCode

Form = Literal["dense", "sparse"]

MOST_WORK = 220_000
"""k^2 (rows + 2 k) of dense rows, k the smaller of rows and features: about what a Newton step costs."""
MOST_ENTRIES = 50_000
"""rows x features of dense rows."""
MOST_STORED = 8_192
"""Stored entries of sparse rows,"""
MOST_FEATURES = 2_048
"""and their features."""


def small_form(objective: Objective) -> Form | None:
    """Which kernel solves it; None for many rows, or a user's loss or regulariser."""
    if len(objective.parts) != 1 or type(objective.regularizer) is not L2 or _code(objective.loss) is None:
        return None
    rows = objective.parts[0].rows
    if isinstance(rows.Z, np.ndarray):
        return "dense" if is_small_size(rows.samples, rows.dimension) else None
    return "sparse" if rows.Z.nnz <= MOST_STORED and rows.dimension <= MOST_FEATURES else None


def is_small(objective: Objective) -> bool:
    """Whether one of the kernels solves it."""
    return small_form(objective) is not None


def is_small_size(rows: int, dimension: int) -> bool:
    """Whether a dense site of this size is small.

    >>> is_small_size(20, 10), is_small_size(40, 105), is_small_size(400, 105)
    (True, True, False)
    """
    k = min(rows, dimension)
    return k * k * (rows + 2 * k) <= MOST_WORK and rows * dimension <= MOST_ENTRIES


def loss_code(loss: Loss) -> LossCode:
    """A shipped loss as the kernels know it."""
    from .slopes import LossCode  # numba: only those who have a small site wait for it

    code, width = _code(loss), getattr(loss, "h", getattr(loss, "scale", 1.0))
    if code is None:
        raise TypeError(f"no compiled kernel supports the loss {type(loss).__name__}.")
    return LossCode(code, width, loss.curvature_bound, getattr(loss, "shift", 0.0))


def _code(loss: Loss) -> int | None:
    """Which of the kernels' losses this is; None for a user's loss, including subclasses of shipped ones."""
    kinds = (Logistic, SmoothHinge, LogCosh)
    return kinds.index(type(loss)) if type(loss) in kinds else None
