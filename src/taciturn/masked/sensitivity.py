"""How far one unit, replaced, moves a sum, and by how much floats may move a site's share: the S and gamma.

Every sum is a mean over n records, or over n persons whose rows' weights add up to at most 1; ||x|| <= X.

    second moments      S = sqrt 2 X^2 / n                  upper triangle, off-diagonal entries times sqrt 2
    means and squares   S = sqrt(2 r^2 + 2 r^4 + 1/2) / n   for r^2 >= 1/2, else 2 r / n
    gradients           S = 2 sup|L'| X / n                 with |L'(0)| in the step at f = 0

r bounds x without its constant entry. Why the second: moving from a to b, with norms up to r, changes
(x, x^2) by ||a - b||^2 + ||a^2 - b^2||^2. Pad each with a coordinate of its own until both norms are r; let
T r^2 be half of sum |a_j^2 - b_j^2|. Then |a.b| <= r^2 sqrt(1 - T^2) and sum (a_j^2 - b_j^2)^2 <= 2 r^4 T^2.
The largest such sum over T is the square above, and two coordinates attain it. Several weighted rows mix
such changes, and a mixture is no longer.
"""

from __future__ import annotations

import math

from ..errors import ParameterError
from ..objective.losses import Loss
from ..objective.softmax import Softmax
from .public.descent import REACH
from .public.losses import TrainingLoss, slope_at_zero

_U = 2.0**-53
_LARGEST_BLOCK, _SMALLEST_BLOCK = 2**14, 64  # rows that are summed at a time
_CURVED = 0.45  # sup |z| L''(z) of log-cosh, whatever its scale: max of v / cosh(v)^2 is 0.4477
_SAFE = 1.001  # second-order terms


def moments_sensitivity(data_norm: float, n: float) -> float:
    """S of the mean of x x', off-diagonal entries released once and times sqrt 2: ||xx' - zz'||_F."""
    return math.sqrt(2.0) * data_norm**2 / n


def squares_sensitivity(data_norm: float, n: float, constant: float | None) -> float:
    """S of the means of x and of x^2 together, without the entry of a constant."""
    r2 = data_norm**2 - (constant or 0.0) ** 2
    if r2 < 0:
        raise ParameterError(f"`constant` must be at most the data's norm, {data_norm:g}; got {constant:g}.")
    return (math.sqrt(2 * r2 + 2 * r2**2 + 0.5) if r2 >= 0.5 else 2 * math.sqrt(r2)) / n


def gradient_sensitivity(loss: TrainingLoss, data_norm: float, n: float, *, first: bool) -> float:
    """S of the mean gradient; `first` at f = 0, where the slopes of many losses are smaller."""
    return 2.0 * (slope_at_zero(loss) if first else loss.slope_bound) * data_norm / n


# -- floats -----------------------------------------------------------------------------------------


def moments_stray(rows: int, data_norm: float) -> float:
    """gamma of the first release, of either kind, at a site with so many rows."""
    return _summed(rows) * (data_norm + data_norm**2) * _SAFE


def gradient_stray(loss: TrainingLoss, rows: int, dimension: int, data_norm: float) -> float:
    """gamma of a gradient at a site with so many rows, taken at a point of norm at most `REACH`.

    The margin is a sum of d products, the slope a few operations, the gradient a sum over the rows in blocks.
    """
    margin = _gamma(dimension + 2) * data_norm * REACH
    if isinstance(loss, Softmax):
        slope = _softmax_error(loss, margin, data_norm)
    else:
        slope = _slope_error(loss, margin, data_norm)
    return data_norm * (slope + _summed(rows) * (loss.slope_bound + slope)) * _SAFE


def _slope_error(loss: Loss, margin: float, data_norm: float) -> float:
    """|computed - true slope|: 8 u |L'| + 2 u (|z| + shift) L'' as losses promise, and the margin's error."""
    c1, shift = loss.curvature_bound, float(getattr(loss, "shift", 0.0))
    curved = c1 * data_norm * REACH
    if loss.kind == "regression":
        curved = 1.5 * _CURVED  # half more than the slope's own: y - f.x is rounded too
    return c1 * margin + 8 * _U * loss.slope_bound + 2 * _U * (curved + c1 * shift)


def _softmax_error(loss: Softmax, margin: float, data_norm: float) -> float:
    """||computed - true w (p - e_y)||: softmax is 1/2-Lipschitz, each p a quotient of a few rounded numbers.

    w (p - e_y) is 8-Lipschitz in p: w <= 1, and |dw| <= 2 / (1 - 1/K) |dp| <= 4 |dp|, ||p - e_y|| <= sqrt 2.
    """
    moved = margin + 2 * _U * data_norm * REACH
    wrong = 0.5 * math.sqrt(loss.classes) * moved + (loss.classes + 16) * _U
    return 8 * wrong + (loss.classes + 16) * _U if loss.bounded else wrong


def _summed(rows: int) -> float:
    """The relative error of a sum over so many rows, block by block."""
    blocks = rows // _SMALLEST_BLOCK + math.isqrt(2 * rows) + 2  # one more for each weight
    return _gamma(min(rows, _LARGEST_BLOCK + blocks) + 8)


def _gamma(operations: int) -> float:
    """k u / (1 - k u), the error bound of k operations."""
    return operations * _U / (1.0 - operations * _U)
