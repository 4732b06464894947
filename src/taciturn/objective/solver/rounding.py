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

import math
from typing import TYPE_CHECKING

import numpy as np

from ...core import checks
from ...core.types import Array
from ..blocks import Block
from ..losses import LogCosh, Logistic, Loss, SmoothHinge

if TYPE_CHECKING:
    from ..local import Objective


U = 2.0**-53


def gamma(k: float) -> float:
    """k u / (1 - k u)."""
    return k * U / (1.0 - k * U)


def exact_bits(terms: int) -> int:
    """beta: bits per factor for which a sum of this many products is exact."""
    return (53 - math.ceil(math.log2(max(2, terms)))) // 2 - 1


def a_priori_error(
    objective: Objective, blocks: list[Block], curvature: float, linear: Array, F: Array
) -> Array:
    """A bound on ||computed - true gradient||_2 for a plain pass over these blocks, (repeats,)."""
    c1 = objective.loss.curvature_bound
    shift = getattr(objective.loss, "shift", 0.0)
    length = np.sqrt(np.einsum("rd,rd->r", F, F))
    data, total = np.zeros(len(F)), np.zeros(len(F))
    depth = max(block.Z.shape[0] for block in blocks) + len(blocks) + 2
    for part in objective.parts:
        rows = part.rows
        z = rows.norm * length + rows.largest_offset
        s1 = steepest(objective.loss, z)
        ds = c1 * gamma(rows.width + 1) * z + 8 * U * s1 + 2 * U * c1 * (z + shift)
        reach = part.weight * rows.samples * rows.norm
        data += reach * (ds + gamma(depth) * s1)
        total += reach * s1
    smooth = objective.rho * np.linalg.norm(objective.regularizer.gradient(F), axis=1)
    smooth = smooth + curvature * length + np.linalg.norm(linear, axis=1)
    return np.asarray(data * (1 + 1e-6) + 8 * U * (total + smooth))


def steepest(loss: Loss, z: Array) -> float | Array:
    """sup |L'| over [-z, z], for a loss that has no other bound; of every other, its bound."""
    if loss.slope_bound < checks.MOST:
        return loss.slope_bound
    return np.maximum(np.abs(loss.slope(-z)), np.abs(loss.slope(z)))


def least_tol(
    loss: Loss, *, C: float, m: Array, smooth: Array, pull: Array, samples: Array, d: int, target: float
) -> Array:
    """A `tol` that careful gradients certify, whatever the rows of norm at most 1 and the vectors are.

    pull : a bound on ||linear|| / m, noise included; the minimiser is at most F = pull + C s1 / m long.
    smooth : curvature bound of all but the data, over m. target : a bound on |y|, 0 for classification.

        a float next to the minimiser is F u away, and has a gradient of (smooth + C c1 / m) F u there
        a careful gradient errs by 8 u (C s1 / m + smooth F + pull) + (C / m) (4 u w + 8 u s1 + 2 u c1 shift)
        and by what is left of the products after they were split

    with w = sup |z| L''(z). A computed gradient is wrong by one such error, its bound adds another, and the
    solver may stop at twice what floats allow.
    """
    s1, c1, weight = loss.slope_bound, loss.curvature_bound, C / m
    F = pull + weight * s1
    rows = int(np.max(samples))
    spare = 2.0 ** -exact_bits(max(d, rows))
    w = _wobble(loss, F + target)
    doubt = 8 * U * (weight * s1 + smooth * F + pull)
    doubt = doubt + weight * U * (4 * w + 8 * s1 + 2 * c1 * getattr(loss, "shift", 0.0))
    doubt = doubt + weight * 4 * spare * (c1 * d * gamma(d + 4) * F + s1 * gamma(rows + 2) * math.sqrt(d))
    return np.asarray(2 * (U * F * (smooth + weight * c1) + 2 * doubt))


def _wobble(loss: Loss, z: Array) -> Array:
    """sup |z| L''(z): what a relative error of z does to the slope; a user's loss may bend anywhere."""
    if type(loss) is Logistic:
        return np.asarray(0.23)
    if type(loss) is LogCosh:
        return np.asarray(0.45)
    if type(loss) is SmoothHinge:
        return np.asarray(1.01 * (1.0 + loss.h) * loss.curvature_bound)
    return np.asarray(loss.curvature_bound * z)
