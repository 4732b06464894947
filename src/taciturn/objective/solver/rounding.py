"""How far a gradient computed in floats may be from the true one: bounds that hold for any summation order.

With u = 2^-53 and gamma(k) = k u / (1 - k u), a sum of k products, however it is ordered, errs by at most
gamma(k) times the sum of the products' sizes [Higham, Accuracy and Stability, 3.1]; zeros do not count, so
rows of width w (nonzero entries) have k = w. Hence for one model f

    z_n          errs by  dz = gamma(w + 1) (||x_n|| ||f|| + |offset|)
    L'(z_n)      errs by  ds = c1 dz + 8 u s1 + 2 u c1 (|z| + shift)          (its own evaluation: 8 u, 2 u)
    Z' L'(z)     errs by  sum_n ||x_n|| (ds + gamma(rows of a block + blocks + 2) s1)

times the weight, and the last additions by 4 u times what they add.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...types import Array
from ..blocks import Block

if TYPE_CHECKING:
    from ..local import Objective


U = 2.0**-53


def gamma(k: float) -> float:
    """k u / (1 - k u)."""
    return k * U / (1.0 - k * U)


def a_priori_error(
    objective: Objective, blocks: list[Block], curvature: float, linear: Array, F: Array
) -> Array:
    """A bound on ||computed - true gradient||_2 for a plain pass over these blocks, (repeats,)."""
    s1, c1 = objective.loss.slope_bound, objective.loss.curvature_bound
    shift = getattr(objective.loss, "shift", 0.0)
    length = np.sqrt(np.einsum("rd,rd->r", F, F))
    data, total = np.zeros(len(F)), 0.0
    depth = max(block.Z.shape[0] for block in blocks) + len(blocks) + 2
    for part in objective.parts:
        rows = part.rows
        z = rows.norm * length + rows.largest_offset
        ds = c1 * gamma(rows.width + 1) * z + 8 * U * s1 + 2 * U * c1 * (z + shift)
        reach = part.weight * rows.samples * rows.norm
        data += reach * (ds + gamma(depth) * s1)
        total += reach * s1
    smooth = objective.rho * np.linalg.norm(objective.regularizer.gradient(F), axis=1)
    smooth = smooth + curvature * length + np.linalg.norm(linear, axis=1)
    return np.asarray(data * (1 + 1e-6) + 8 * U * (total + smooth))
