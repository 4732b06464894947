"""Compiled elementary functions. Only modules with compiled code import this module, since it loads numba.

Each function is a fixed sequence of IEEE operations: nothing is reordered (no `fastmath`), and no loop runs
in parallel. So the bits of a result are always the same: for a single number and in a loop, with and without
vector instructions, and with `NUMBA_DISABLE_JIT=1`. Libraries do not guarantee this for exp and log, so this
file defines both.

Numba caches the machine code of each file in __pycache__, and compiles a file again only if that file
changes. The machine code of other files contains these functions. So after a change to this file, delete
__pycache__.

The relative errors are at most 2 * 2^-53 for exp, and 3 * 2^-53 for log and log1p.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from ..core.types import Array

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile the function with numba at its first call; the function runs without Python's global lock."""
    return cast(F, numba.njit(nogil=True, cache=True, error_model="numpy")(function))


_LOG2_E = 1.4426950408889634
_LN2_HIGH = float.fromhex("0x1.62e42fefa38p-1")  # 42 bits: its product with n <= 1023 is exact
_LN2_LOW = float.fromhex("0x1.ef35793c7673p-45")
_POWERS = np.array([math.ldexp(1.0, n) for n in range(-1022, 1024)])
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (
    1.0 / math.factorial(k) for k in range(2, 14)
)
_SQRT2 = math.sqrt(2.0)


@compiled
def exp(x: float) -> float:
    """e^x for |x| <= 708: 2^n times the Taylor series of e^r, where r = x - n ln(2) and |r| <= ln(2)/2."""
    n, series = exp_parts(x)
    return series * power_of_two(n)


@compiled
def power_of_two(n: float) -> float:
    """2^n for whole n from -1022 to 1023."""
    return float(_POWERS[int(n) + 1022])


@compiled
def exp_parts(x: float) -> tuple[float, float]:
    """(n, s) with e^x = 2^n s. No table is used, so that a loop over many x can use vector instructions."""
    n = math.floor(x * _LOG2_E + 0.5)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    q = r * r
    low = (_C2 + r * _C3) + q * ((_C4 + r * _C5) + q * (_C6 + r * _C7))
    high = (_C8 + r * _C9) + q * ((_C10 + r * _C11) + q * (_C12 + r * _C13))
    return float(n), 1.0 + (r + q * (low + (q * q * q) * high))


@compiled
def _log_near_one(x: float, rest: float) -> float:
    """log(x + rest) for x from 1/sqrt(2) to sqrt(2): a series of 2 artanh(s), s = f / (2 + f), f = x - 1."""
    f = x - 1.0
    s = f / (2.0 + f)
    w = s * s
    v = w * w
    low = (1 / 3 + w * (1 / 5)) + v * (1 / 7 + w * (1 / 9))
    high = (1 / 11 + w * (1 / 13)) + v * ((1 / 15 + w * (1 / 17)) + v * (1 / 19 + w * (1 / 21)))
    t = low + (v * v) * high
    return f - (s * (f - 2.0 * w * t) - rest / x)


@compiled
def log(x: float) -> float:
    """log x for x > 0; x must not be subnormal."""
    m, k = math.frexp(x)
    if m < 0.5 * _SQRT2:
        m, k = 2.0 * m, k - 1
    return k * _LN2_HIGH + (_log_near_one(m, 0.0) + k * _LN2_LOW)


@compiled
def log1p(x: float) -> float:
    """log(1 + x) for x in [0, 1]."""
    y = 1.0 + x
    rest = x - (y - 1.0)
    if y > _SQRT2:
        return _LN2_HIGH + (_log_near_one(0.5 * y, 0.5 * rest) + _LN2_LOW)
    return _log_near_one(y, rest)


@compiled
def dot(a: Array, b: Array) -> float:
    """a . b, summed from the first entry to the last."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def assign(to: Array, values: Array) -> None:
    """to[:] = values. This loop compiles faster than a slice assignment, which may raise an error."""
    for i in range(len(to)):
        to[i] = values[i]
