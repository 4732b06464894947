"""Exact samplers of integer noise: discrete Gaussian and discrete Laplace [CKS20, section 5].

    P(z) ~ exp(-z^2 / (2 s^2))        and        P(z) ~ exp(-|z| / s),        z = 0, +-1, +-2, ...

An event of probability exp(-x) is drawn by comparing exp(-x), in floats, with 64 random bits, read as a
number in [0, 1). If the two numbers are too close for floats to decide, more bits are drawn and exp(-x) is
computed to as many digits as needed. So the answer is always that of exact arithmetic. The bits come from the
caller's generator; in a real run this is ChaCha20 with a fresh key. A sampler that keeps its own state, such
as opendp's, would draw the same noise twice if a virtual machine is resumed twice from one image. The tests
compare the samplers of this module with opendp's.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..core import checks
from ..core.errors import ParameterError
from ..core.types import Array

Ints = NDArray[np.int64]
Exact = Callable[[int], Fraction]

_NEAR = 1e-9  # floats decide if exp(-x) and the random number differ by more than this; the error is < 1e-12
_FEW, _TOSSES = 4096, 8  # for up to _FEW numbers, `_times` draws _TOSSES random booleans at a time for each
LARGEST = 2.0**50
"""The largest scale. At this scale the absolute value of a draw exceeds 2^62 with probability below
exp(-4000)."""


def discrete_gaussian(generator: np.random.Generator, scale: float, size: int) -> Ints:
    """Independent draws with exactly P(z) ~ exp(-z^2 / (2 scale^2)), where `scale` is not rounded."""
    s = _scale(scale)
    t = math.floor(s) + 1

    def draw(n: int) -> Ints:
        z = discrete_laplace(generator, float(t), n)
        far = np.abs(z).astype(np.float64) - s * (s / t)

        def exact(k: int) -> Fraction:
            """(|z| - s^2/t)^2 / (2 s^2)"""
            square = Fraction(s) ** 2
            return (abs(int(z[k])) - square / t) ** 2 / (2 * square)

        return np.asarray(z[_falls(generator, np.square(far / s) / 2, exact)])

    return _accepted(size, 0.76, draw)


def discrete_laplace(generator: np.random.Generator, scale: float, size: int) -> Ints:
    """Independent draws with P(z) ~ exp(-|z| / scale), where `scale` is first rounded up to an integer."""
    t = math.ceil(_scale(scale))

    def draw(n: int) -> Ints:
        sizes = _geometric(generator, t, n)
        negative = (_words(generator, n) & np.uint64(1)).astype(bool)
        taken = ~(negative & (sizes == 0))  # otherwise 0 would be drawn twice as often
        return np.asarray(np.where(negative, -sizes, sizes)[taken])

    return _accepted(size, 1 - 1 / (2 * t), draw)


def _accepted(size: int, share: float, draw: Callable[[int], Ints]) -> Ints:
    """The first `size` accepted draws; `draw(n)` draws n candidates and returns the accepted ones, in order.

    About `share` of the candidates are accepted. Each call of `draw` asks for slightly more candidates than
    are needed on average, because the time for a short vector depends on the number of calls.
    """
    found = np.empty(0, dtype=np.int64)
    while found.size < size:
        left = size - found.size
        more = draw(math.ceil((left + 3 * math.sqrt(left)) / share) + 4)
        found = np.concatenate((found, more)) if found.size else more
    return found[:size]


def draw_steps(
    kind: str, generator: np.random.Generator, scale: float, grid: float, d: int, runs: int
) -> Ints:
    """The noise that a real run adds last to a release, in grid steps; the result has shape (runs, d).

    Instead of Gaussian noise of standard deviation `scale`, the run adds discrete Gaussian noise of scale
    `scale / grid`. Instead of norm noise of rate `scale`, it adds discrete Laplace noise of scale
    sqrt(d) / (scale grid) to every coordinate. If one record moves the vector by x with ||x|| <= r, this
    Laplace noise costs at most scale r, as norm noise would, because ||x||_1 <= sqrt(d) ||x||.
    """
    if kind == "gaussian":
        return discrete_gaussian(generator, scale / grid, runs * d).reshape(runs, d)
    return discrete_laplace(generator, math.sqrt(d) / (scale * grid), runs * d).reshape(runs, d)


def _geometric(generator: np.random.Generator, t: int, size: int) -> Ints:
    """Draws with P(n) ~ exp(-n / t), n = 0, 1, ...: n = u + t v, u < t, P(u) ~ exp(-u/t), P(v) ~ exp(-v)."""

    def draw(n: int) -> Ints:
        u = generator.integers(0, t, n, dtype=np.int64)  # unbiased: NumPy rejects values
        return u[_falls(generator, u / t, lambda k: Fraction(int(u[k]), t))]

    return _accepted(size, 1 - math.exp(-1), draw) + t * _times(generator, size)


def _times(generator: np.random.Generator, size: int) -> Ints:
    """`size` draws of the number of successes before the first failure; P(success) = exp(-1)."""
    times = np.zeros(size, dtype=np.int64)
    open_, tosses = np.arange(size), _TOSSES if size <= _FEW else 1
    while open_.size:
        fell = _falls(generator, np.ones(open_.size * tosses), lambda k: Fraction(1)).reshape(-1, tosses)
        ends = ~fell.all(axis=1)
        times[open_] += np.where(ends, fell.argmin(axis=1), tosses)
        open_ = open_[~ends]
    return times


def _falls(generator: np.random.Generator, x: Array, exact: Exact) -> NDArray[np.bool_]:
    """Random booleans that are True with probability exp(-x), x >= 0; `exact(k)` is x[k] as a fraction."""
    words = _words(generator, x.size)
    share, chance = words.astype(np.float64) * 2.0**-64, np.exp(-x)
    answer = np.asarray(share < chance)
    for k in np.flatnonzero(np.abs(share - chance) < _NEAR):
        answer[k] = _below(generator, int(words[k]), exact(int(k)))
    return answer


def _below(generator: np.random.Generator, word: int, x: Fraction) -> bool:
    """Whether a uniform number whose first 64 bits are `word` is below exp(-x)."""
    bits, digits = 64, 40
    while True:
        low, high = _bracket(x, digits)
        if Fraction(word + 1, 2**bits) <= low:
            return True
        if Fraction(word, 2**bits) >= high:
            return False
        word, bits, digits = (word << 64) + int(_words(generator, 1)[0]), bits + 64, digits + 40


def _bracket(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """(low, high) with low <= exp(-x) <= high; both agree to about `digits` - 8 digits."""
    with decimal.localcontext(decimal.Context(prec=digits, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)):
        slip = Fraction(1, 10 ** (digits - 8))
        ratio = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
        middle = Fraction((-ratio).exp())  # the division and `exp` each err by one unit in the last digit
    wide = slip * (1 + x) * middle
    return middle - wide, min(Fraction(1), middle + wide)


def _words(generator: np.random.Generator, size: int) -> NDArray[np.uint64]:
    """Words of 64 random bits each."""
    return generator.integers(0, 2**64, size, dtype=np.uint64)


def _scale(scale: float) -> float:
    number = checks.positive("scale", scale)
    if number > LARGEST:
        raise ParameterError(
            f"`scale` must be at most 2^50 steps of the grid; got {number:g}. Choose a coarser grid."
        )
    return number
