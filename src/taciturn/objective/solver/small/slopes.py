"""Compiled functions that compute the values, slopes and curvatures of three losses L at many margins z.

A compiled function cannot use a loss object. It uses a `LossCode`, which describes the loss by numbers.
"""

from __future__ import annotations

from typing import NamedTuple

from ....core.types import Array
from ....kernels.arithmetic import compiled, exp, log1p

LOGISTIC, HINGE, LOG_COSH = 0, 1, 2
_U = 2.0**-53
_FAR = 700.0  # exp(-700) is not subnormal


class LossCode(NamedTuple):
    """The numbers that describe a loss L with |L'| <= 1.

    code : LOGISTIC, HINGE or LOG_COSH.
    width : the parameter `h` of `SmoothHinge` or `scale` of `LogCosh`; not used for `Logistic`.
    bend : sup L''.
    shift : no intermediate result of L'(z) exceeds |z| + shift.
    """

    code: int
    width: float
    bend: float
    shift: float


@compiled
def slopes(law: LossCode, z: Array, s: Array) -> None:
    """s = L'(z); the error of each entry is at most 8 u + 2 u bend (|z| + shift), where u = 2^-53."""
    width = law.width
    if law.code == LOGISTIC:
        for n in range(len(z)):
            s[n] = -1.0 / (1.0 + exp(min(max(z[n], -_FAR), _FAR)))
    elif law.code == HINGE:
        for n in range(len(z)):
            s[n] = min(max(z[n] - (1.0 + width), -2.0 * width), 0.0) / (2.0 * width)
    else:
        for n in range(len(z)):
            e = exp(-min(2.0 * (abs(z[n]) / width), _FAR))
            t = (1.0 - e) / (1.0 + e)
            s[n] = t if z[n] >= 0.0 else -t


@compiled
def curvatures(law: LossCode, z: Array, s: Array, h: Array) -> None:
    """h = L''(z), computed from z and the slopes s = L'(z)."""
    width = law.width
    if law.code == LOGISTIC:
        for n in range(len(z)):
            h[n] = -s[n] * (1.0 + s[n])
    elif law.code == HINGE:
        for n in range(len(z)):
            h[n] = 0.5 / width if abs(1.0 - z[n]) <= width else 0.0
    else:
        for n in range(len(z)):
            h[n] = (1.0 - s[n] * s[n]) / width


@compiled
def total_value(law: LossCode, z: Array) -> float:
    """The sum of L(z) over all entries of z."""
    total, width = 0.0, law.width
    for n in range(len(z)):
        if law.code == LOGISTIC:
            total += max(-z[n], 0.0) + log1p(exp(-min(abs(z[n]), _FAR)))
        elif law.code == HINGE:
            into = min(max(1.0 + width - z[n], 0.0), 2.0 * width)
            total += into * into / (4.0 * width) + max(1.0 - width - z[n], 0.0)
        else:
            ratio = abs(z[n]) / width
            if ratio < 1e-3:  # use log cosh x = x^2/2 - x^4/12 + ...; the formula below would lose digits
                square = ratio * ratio
                total += width * square * (0.5 - square / 12.0)
            else:
                total += width * (ratio + (log1p(exp(-min(2.0 * ratio, _FAR))) - 0.6931471805599453))
    return total


@compiled
def mean_quality(z: Array, classify: bool) -> float:
    """For classification, the share of z > 0 (z = 0 counts half); for regression, the mean of |z|."""
    total = 0.0
    for n in range(len(z)):
        total += abs(z[n]) if not classify else 1.0 if z[n] > 0.0 else -1.0 if z[n] < 0.0 else 0.0
    return 0.5 * (1.0 + total / len(z)) if classify else total / len(z)


@compiled
def gradient_doubt(
    law: LossCode, sizes: tuple[float, float, float, float], count: int, m: float, length: float, pull: float
) -> float:
    """An upper bound on the rounding error of a gradient, derived in `rounding.py`.

    sizes : the weight, max ||x||, max |offset|, and 1 + the largest number of entries in a row.
    count, length, pull : the number of rows, ||f||, and ||b||; kernel.py explains m, f and b.
    """
    weight, norm, far, wide = sizes
    reach = weight * count * norm
    size = norm * length + far
    ds = law.bend * (wide * _U) * size + 8.0 * _U + 2.0 * _U * law.bend * (size + law.shift)
    bound: float = reach * (ds + (count + 3) * _U) * (1.0 + 1e-6) + 8.0 * _U * (reach + m * length + pull)
    return bound
