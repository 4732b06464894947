"""How far a masked sum can move if one unit is replaced (S), and the float error gamma of what a site adds.

A unit is a record, or a person: the weights of a person's rows add up to at most 1. Counts are sums; every
other sum is a mean over n units. Every row has ||x|| <= X. x~ = W'x is a whitened row (docs/privacy.md, 16).

    second moments      S = sqrt 2 X^2 / n                  upper triangle, off-diagonal entries times sqrt 2
    means and squares   S = sqrt(2 X^2 + 2 X^4 + 1/2) / n   for X^2 >= 1/2, else 2 X / n
    counts              S = sqrt(2 k)                       of k tables in each of which a unit counts once
    gradients           S = 2 sup|L'| X / n                 with |L'(0)| in the step at f = 0
    whitened moments    S = sqrt 2 / n                      of matrices omega x~ x~' / cap of norm at most 1
    clipped gradients   S = 2 / n                           of vectors psi x~ / q of norm at most 1

Proof for means and squares: replacing a row a by a row b, with norms up to X, changes (x, x^2) by a vector of
squared norm ||a - b||^2 + ||a^2 - b^2||^2. Give each of a and b one extra coordinate, so that both norms are
X; let T X^2 be half of sum |a_j^2 - b_j^2|. Then |a.b| <= X^2 sqrt(1 - T^2) and sum (a_j^2 - b_j^2)^2 <=
2 X^4 T^2. The maximum over T of the resulting bound is the square of n S above, and rows with two coordinates
attain it. Several weighted rows give a weighted mean of such changes, which is not longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

REACH = 2.0**12
"""The largest norm of a point at which a gradient is computed. The bound on float errors depends on it."""

KAPPA = (0.3, 1.2)
"""The smallest and the largest bound on the length of a whitened row, in units of sqrt K, where K >= 1 is the
effective dimension (`methods/programs/coordinates.py`)."""

CAP_LEAST = 1.2
"""The smallest cap of whitened moments. The cap is min(4 kappa, 2) K."""

_U = 2.0**-53
_LARGEST_BLOCK, _SMALLEST_BLOCK = 2**14, 64  # bounds on the number of rows that are summed at a time
_GROUP = 64  # the number of rows of a clipped gradient that are added without error compensation
_CURVED = 0.45  # sup |z| L''(z) of log-cosh, whatever its scale: max of v / cosh(v)^2 is 0.4477
_SAFE = 1.001  # covers second-order terms


def moments_sensitivity(X: float, n: float) -> float:
    """S of the mean of x x'; off-diagonal entries count once, times sqrt 2, as in ||xx' - zz'||_F."""
    return math.sqrt(2.0) * X**2 / n


def squares_sensitivity(X: float, n: float) -> float:
    """S of the means of x and of x^2; leaving out the entries of a constant column does not increase it."""
    X2 = X**2
    return (math.sqrt(2 * X2 + 2 * X2**2 + 0.5) if X2 >= 0.5 else 2 * X) / n


def counts_sensitivity(tables: int) -> float:
    """S of `tables` tables of counts, if every unit has a total weight of 1 in each table: sqrt(2 tables).

    In one table, two units have weights p, q >= 0 that add up to at most 1 for each unit. So
    ||p - q||^2 <= ||p||^2 + ||q||^2 <= 2. Two units in different cells attain this bound.
    """
    return math.sqrt(2.0 * tables)


# -- floats -----------------------------------------------------------------------------------------


def moments_stray(rows: int, X: float) -> float:
    """gamma of second moments, or of means and squares, at a site with `rows` rows."""
    return _summed(rows) * (X + X**2) * _SAFE


def gradient_stray(slope: float, error: float, rows: int, X: float) -> float:
    """gamma of a gradient at a site with `rows` rows, if each computed slope errs by at most `error`."""
    return X * (error + _summed(rows) * (slope + error)) * _SAFE


def margin_error(d: int, X: float) -> float:
    """The largest error of a margin, a sum of d products, at a point of norm at most `REACH`."""
    return _gamma(d + 2) * X * REACH


def slope_error(s1: float, c1: float, shift: float, margin: float, X: float, *, residual: bool) -> float:
    """A bound on |computed - true slope|: c1 margin + 8 u |L'| + 2 u (|z| + shift) L'', u = 2^-53."""
    curved = c1 * X * REACH
    if residual:
        curved = 1.5 * _CURVED  # 50% more, because y - f.x is rounded too
    return c1 * margin + 8 * _U * s1 + 2 * _U * (curved + c1 * shift)


def softmax_error(classes: int, margin: float, X: float, *, bounded: bool) -> float:
    """A bound on ||computed - true w (p - e_y)||, where p is the softmax of the margins.

    Softmax is 1/2-Lipschitz, and each entry of p is a quotient of a few rounded numbers.
    w (p - e_y) is 8-Lipschitz in p: w <= 1, and |dw| <= 2 / (1 - 1/K) |dp| <= 4 |dp|, ||p - e_y|| <= sqrt 2.
    """
    moved = margin + 2 * _U * X * REACH
    wrong = 0.5 * math.sqrt(classes) * moved + (classes + 16) * _U
    return 8 * wrong + (classes + 16) * _U if bounded else wrong


def stretch(d: int, noises: Sequence[float]) -> float:
    """The largest norm of the whitening matrix W after releases of moments; `noises` are their noise stds.

    The standard deviations are in units of the cap (the bound on a row's matrix). Each release divides the
    rows by sqrt(level + nu), level >= 0 and nu = sqrt(2 d) noise cap / 2.
    """
    result = 1.0
    for k, noise in enumerate(noises):
        result /= math.sqrt(0.5 * math.sqrt(2.0 * d) * noise * (CAP_LEAST if k else 1.0))
    return result


def whitened_moments_stray(rows: int, d: int, longest: float) -> float:
    """gamma of whitened moments if ||W|| <= longest; r = ||x~||.

    The error of the computed x~ = W'x is at most e = gamma_d ||W||_F. This error moves omega x~ x~' / cap by
    at most 2 omega r e / cap <= 2.4 e. The error also moves omega by at most 2 e / 0.6, because omega depends
    on r only if r >= 2 kappa >= 0.6.
    """
    wrong = _coordinate_error(d, longest)
    return (_summed(rows) + 6.0 * wrong + 4.0 * (d + 4) * _U) * _SAFE


def clipped_gradient_stray(rows: int, d: int, longest: float) -> float:
    """gamma of a clipped gradient at a point of norm at most `REACH`, if ||W|| <= longest; r = ||x~||.

    A slope psi changes by at most q / r per unit of its margin. Psi depends on r only if r >= q >= 0.3, and
    then changes by at most q / r per relative change of r. Neither change grows with ||W||. The error of the
    sum over rows does grow with ||W||, because W' is applied after the sum. That error is the error of a sum
    of 64 rows, because sums of 64 rows are added with error compensation. Parts with different weights, at
    most 2 sqrt(2 rows) of them, are added without compensation.
    """
    slopes = margin_error(d, 1.0) + _coordinate_error(d, longest) / KAPPA[0] + (d + 20) * _U
    summed = _gamma(_GROUP + 2 * math.isqrt(2 * rows) + 10) + _coordinate_error(d, 1.0)
    return (slopes + longest / KAPPA[0] * summed) * _SAFE


def _coordinate_error(d: int, longest: float) -> float:
    """||computed - true W'x|| for ||x|| <= 1."""
    return _gamma(d + 2) * math.sqrt(d) * longest


def _summed(rows: int) -> float:
    """The relative error of a sum over `rows` rows, block by block."""
    blocks = rows // _SMALLEST_BLOCK + math.isqrt(2 * rows) + 2  # each weight may add a block
    return _gamma(min(rows, _LARGEST_BLOCK + blocks) + 8)


def _gamma(operations: int) -> float:
    """k u / (1 - k u): the bound on the relative error of k float operations, u the unit roundoff."""
    return operations * _U / (1.0 - operations * _U)
