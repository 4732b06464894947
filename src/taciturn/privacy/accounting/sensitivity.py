"""Sensitivity S of a masked sum to one replaced unit, and the float error gamma of a site's share.

Every sum is a mean over n records, or over n persons whose rows' weights add up to at most 1; ||x|| <= X.
Counts are no mean: they are sums.

    second moments      S = sqrt 2 X^2 / n                  upper triangle, off-diagonal entries times sqrt 2
    means and squares   S = sqrt(2 X^2 + 2 X^4 + 1/2) / n   for X^2 >= 1/2, else 2 X / n
    counts              S = sqrt(2 k)                       of k tables in each of which a unit counts once
    gradients           S = 2 sup|L'| X / n                 with |L'(0)| in the step at f = 0
    whitened moments    S = sqrt 2 / n                      of matrices omega x~ x~' / cap of norm at most 1
    clipped gradients   S = 2 / n                           of vectors psi x~ / q of norm at most 1

Why the second: moving from a to b, with norms up to X, changes (x, x^2) by ||a - b||^2 + ||a^2 - b^2||^2. Pad
each with a coordinate of its own until both norms are X; let T X^2 be half of sum |a_j^2 - b_j^2|. Then
|a.b| <= X^2 sqrt(1 - T^2) and sum (a_j^2 - b_j^2)^2 <= 2 X^4 T^2. The largest such sum over T is the square
above, and two coordinates attain it. Several weighted rows mix such changes, and a mixture is no longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

REACH = 2.0**12
"""No gradient is asked for at a point farther out: the bound on floating-point errors depends on it."""

KAPPA = (0.3, 1.2)
"""Between these the clip of whitened rows lies, in units of sqrt K with K >= 1."""

CAP_LEAST = 1.2
"""The least cap of whitened moments, min(4 kappa, 2) K."""

_U = 2.0**-53
_LARGEST_BLOCK, _SMALLEST_BLOCK = 2**14, 64  # rows that are summed at a time
_GROUP = 64  # rows of a clipped gradient that are added up plainly
_CURVED = 0.45  # sup |z| L''(z) of log-cosh, whatever its scale: max of v / cosh(v)^2 is 0.4477
_SAFE = 1.001  # second-order terms


def moments_sensitivity(X: float, n: float) -> float:
    """S of the mean of x x', off-diagonal entries released once and times sqrt 2: ||xx' - zz'||_F."""
    return math.sqrt(2.0) * X**2 / n


def squares_sensitivity(X: float, n: float) -> float:
    """S of the means of x and of x^2 together; without the entries of a constant it is no larger."""
    X2 = X**2
    return (math.sqrt(2 * X2 + 2 * X2**2 + 0.5) if X2 >= 0.5 else 2 * X) / n


def counts_sensitivity(tables: int) -> float:
    """S of so many tables of counts, in each of which every unit has a weight of 1 in all: sqrt(2 tables).

    The weights of one unit and of another in one table are p, q >= 0 that add up to at most 1 each, so
    ||p - q||^2 <= ||p||^2 + ||q||^2 <= 2. Two units in different cells attain it.
    """
    return math.sqrt(2.0 * tables)


def gradient_sensitivity(slope: float, X: float, n: float) -> float:
    """S of the mean gradient where no slope is larger."""
    return 2.0 * slope * X / n


# -- floats -----------------------------------------------------------------------------------------


def moments_stray(rows: int, X: float) -> float:
    """gamma of the first release, of either kind, at a site with so many rows."""
    return _summed(rows) * (X + X**2) * _SAFE


def gradient_stray(slope: float, error: float, rows: int, X: float) -> float:
    """gamma of a gradient at a site with so many rows, whose slopes are wrong by at most `error`."""
    return X * (error + _summed(rows) * (slope + error)) * _SAFE


def margin_error(d: int, X: float) -> float:
    """By how much a margin may be wrong, a sum of d products, at a point of norm at most `REACH`."""
    return _gamma(d + 2) * X * REACH


def slope_error(s1: float, c1: float, shift: float, margin: float, X: float, *, residual: bool) -> float:
    """|computed - true slope|: 8 u |L'| + 2 u (|z| + shift) L'' as losses promise, and the margin's error."""
    curved = c1 * X * REACH
    if residual:
        curved = 1.5 * _CURVED  # half more than the slope's own: y - f.x is rounded too
    return c1 * margin + 8 * _U * s1 + 2 * _U * (curved + c1 * shift)


def softmax_error(classes: int, margin: float, X: float, *, bounded: bool) -> float:
    """||computed - true w (p - e_y)||: softmax is 1/2-Lipschitz, each p a quotient of a few rounded numbers.

    w (p - e_y) is 8-Lipschitz in p: w <= 1, and |dw| <= 2 / (1 - 1/K) |dp| <= 4 |dp|, ||p - e_y|| <= sqrt 2.
    """
    moved = margin + 2 * _U * X * REACH
    wrong = 0.5 * math.sqrt(classes) * moved + (classes + 16) * _U
    return 8 * wrong + (classes + 16) * _U if bounded else wrong


def stretch(d: int, noises: Sequence[float]) -> float:
    """The largest ||W|| after so many whitened releases, whose noise, in units of the cap, has these spreads.

    Each release divides by sqrt(level + nu), level >= 0 and nu = sqrt(2 d) noise cap / 2.
    """
    result = 1.0
    for k, noise in enumerate(noises):
        result /= math.sqrt(0.5 * math.sqrt(2.0 * d) * noise * (CAP_LEAST if k else 1.0))
    return result


def whitened_moments_stray(rows: int, d: int, longest: float) -> float:
    """gamma of whitened moments, ||W|| <= longest.

    x~ = W'x is wrong by e = gamma_d ||W||_F at most. That moves omega x~ x~' / cap by 2 omega r e / cap
    <= 2.4 e, and omega itself, which depends on r where r >= 2 kappa >= 0.6 only, by 2 e / 0.6 at most.
    """
    wrong = _coordinate_error(d, longest)
    return (_summed(rows) + 6.0 * wrong + 4.0 * (d + 4) * _U) * _SAFE


def clipped_gradient_stray(rows: int, d: int, longest: float) -> float:
    """gamma of a clipped gradient, ||W|| <= longest, at a point of norm at most `REACH`.

    A slope psi moves with its margin by at most q / r, and with r, where r >= q >= 0.3 only, by q / r per
    relative change of r: neither grows with ||W||. The sum over rows is taken before W' is applied: its own
    error does. It is that of 64 rows, since such sums are added up with what each addition loses; the sums
    of parts of different weights, at most 2 sqrt(2 rows) of them, are added plainly.
    """
    slopes = margin_error(d, 1.0) + _coordinate_error(d, longest) / KAPPA[0] + (d + 20) * _U
    summed = _gamma(_GROUP + 2 * math.isqrt(2 * rows) + 10) + _coordinate_error(d, 1.0)
    return (slopes + longest / KAPPA[0] * summed) * _SAFE


def _coordinate_error(d: int, longest: float) -> float:
    """||computed - true W'x|| for ||x|| <= 1."""
    return _gamma(d + 2) * math.sqrt(d) * longest


def _summed(rows: int) -> float:
    """The relative error of a sum over so many rows, block by block."""
    blocks = rows // _SMALLEST_BLOCK + math.isqrt(2 * rows) + 2  # one more for each weight
    return _gamma(min(rows, _LARGEST_BLOCK + blocks) + 8)


def _gamma(operations: int) -> float:
    """k u / (1 - k u), the error bound of k operations."""
    return operations * _U / (1.0 - operations * _U)
