"""The average of the vectors that the sites released. The average costs no privacy.

A number computed from released vectors alone reveals nothing beyond these vectors (post-processing). An
average that includes a vector that was not released would reveal more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import ParameterError
from ...core.types import Array


def network_average(released: Array, weights: ArrayLike | None = None) -> Array:
    """sum_i w_i f_i / sum_i w_i: (..., sites, d) -> (..., d); equal weights by default.

    Without weights, the vectors are added in the order of the sites. No matrix product is used, so that
    every machine gets the same bits.
    """
    if weights is None:
        return np.asarray(released.mean(axis=-2))
    w, sites = np.asarray(weights, dtype=np.float64), released.shape[-2]
    if w.shape != (sites,) or not np.all(np.isfinite(w) & (w >= 0)) or w.sum() <= 0:
        raise ParameterError(f"`weights` must be {sites} numbers of at least 0, not all 0.")
    return np.asarray(np.tensordot(released, w / w.sum(), axes=([-2], [0])))
