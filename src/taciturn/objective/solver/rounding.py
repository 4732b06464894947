"""Upper bounds on the rounding error of a computed gradient, for any order of summation.

Let u = 2^-53 and gamma(k) = k u / (1 - k u). The rounding error of a sum of k products, in any order, is at
most gamma(k) times the sum of the products' absolute values [Higham, Accuracy and Stability, 3.1]. Products
that are zero do not count: a row with w nonzero entries has k = w. Hence, for one model f and the loss L,
the errors of these quantities are at most

    z_n          dz = gamma(w + 1) (||x_n|| ||f|| + |offset|)
    L'(z_n)      ds = c1 dz + 8 u s1 + 2 u c1 (|z| + shift)      (c1 dz comes from z, the rest from L')
    Z' L'(z)     sum_n ||x_n|| (ds + gamma(rows of a block + blocks + 2) s1)

where c1 = sup L'', s1 = sup |L'|, and losses.py explains `shift`. In the gradient, Z' L'(z) is multiplied by
the weight of the rows, and so is its error. The final additions add errors of at most 4 u times the terms
that they add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    """beta: if every factor has at most beta bits, floats add up `terms` products exactly."""
    return (53 - math.ceil(math.log2(max(2, terms)))) // 2 - 1


def a_priori_error(
    objective: Objective, blocks: Sequence[Block], curvature: float, linear: Array, F: Array
) -> Array:
    """An upper bound on ||computed - true gradient||_2 at every row of F, (repeats,)."""
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
    """The slope bound of the loss; for a loss without a slope bound, sup |L'| over [-z, z]."""
    if loss.slope_bound < checks.MOST:
        return loss.slope_bound
    return np.maximum(np.abs(loss.slope(-z)), np.abs(loss.slope(z)))


def least_tol(
    loss: Loss, *, C: float, m: Array, smooth: Array, pull: Array, samples: Array, d: int, target: float
) -> Array:
    """A `tol` that the solver can reach with careful gradients (careful.py), if all rows have norm <= 1.

    C : the weight of the loss.
    m : the strong convexity constant of the minimised function.
    pull : an upper bound on ||linear|| / m, where `linear` is the linear term of the minimised function. It
        includes the noise. The norm of the minimiser is at most F = pull + C s1 / m.
    smooth : the curvature bound of all terms except the loss, divided by m.
    target : an upper bound on |y|; 0 for classification.

    The floats nearest to the minimiser are up to F u away from it; the gradient at these floats, divided by
    m, is up to (smooth + C c1 / m) F u. With w = sup |z| L''(z), the error of a careful gradient, divided by
    m, is

        8 u (C s1 / m + smooth F + pull) + (C / m) (4 u w + 8 u s1 + 2 u c1 shift)

    plus the errors of the products with a rest (see careful.py). This error counts twice: in the gradient,
    and in the bound on the gradient's error. The total is doubled, because the solver may stop at twice the
    smallest norm that floats allow.
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
    """An upper bound w on sup |z| L''(z). An error of e |z| in z changes L'(z) by at most about w e."""
    if type(loss) is Logistic:
        return np.asarray(0.23)
    if type(loss) is LogCosh:
        return np.asarray(0.45)
    if type(loss) is SmoothHinge:
        return np.asarray(1.01 * (1.0 + loss.h) * loss.curvature_bound)
    return np.asarray(loss.curvature_bound * z)
