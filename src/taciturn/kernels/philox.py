"""Compiled generators of random vectors for simulations.

A vector depends only on the key, the round, the site, the repeat (one of several independent runs) and the
purpose of the vector, so it does not depend on other vectors. Philox4x32-10 [Salmon et al., SC 2011] turns a
key and a counter of four 32-bit words into four random words. The first word of the counter increases with
every block of four random words. The others are the round, the site, and a number for the repeat and the
purpose. Two random words make a uniform number of 53 bits. Normal numbers come from Marsaglia's polar method.
A Gamma(d) number, for a whole number d, is the sum of d exponential numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from .arithmetic import compiled, dot, log

Words = NDArray[np.uint64]

_32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_5, _6, _ONE = np.uint64(5), np.uint64(6), np.uint64(1)
_TOGETHER = 16  # the product of this many uniform numbers does not underflow


@compiled
def block(key: Words, counter: Words, out: Words) -> None:
    """Set `out` to four random words of 32 bits, each stored in 64 bits; input words must be below 2^32."""
    a, b, c, d = counter[0], counter[1], counter[2], counter[3]
    k, w = key[0], key[1]
    for _ in range(10):
        p, q = _M0 * a, _M1 * c
        a, b, c, d = (q >> _32) ^ b ^ k, q & _LOW, (p >> _32) ^ d ^ w, p & _LOW
        k, w = (k + _W0) & _LOW, (w + _W1) & _LOW
    out[0], out[1], out[2], out[3] = a, b, c, d


@compiled
def _two_uniforms(key: Words, counter: Words, words: Words) -> tuple[float, float]:
    """Two uniform numbers from [0, 1), multiples of 2^-53. The counter is increased by one."""
    block(key, counter, words)
    counter[0] += _ONE
    u = (float(words[0] >> _5) * 67108864.0 + float(words[1] >> _6)) * 2.0**-53
    v = (float(words[2] >> _5) * 67108864.0 + float(words[3] >> _6)) * 2.0**-53
    return u, v


@compiled
def _normals(key: Words, counter: Words, words: Words, out: Array) -> None:
    """Fill `out` with standard normal numbers; each random point of the unit disc gives two numbers."""
    d = len(out)
    for j in range(0, d, 2):
        x, y, s = 0.0, 0.0, 0.0
        while not 0.0 < s < 1.0:
            x, y = _two_uniforms(key, counter, words)
            x, y = 2.0 * x - 1.0, 2.0 * y - 1.0
            s = x * x + y * y
        scale = math.sqrt(-2.0 * log(s) / s)
        out[j] = x * scale
        if j + 1 < d:
            out[j + 1] = y * scale


@compiled
def _gamma(key: Words, counter: Words, words: Words, d: int) -> float:
    """A Gamma(d, 1) number, -log of the product of d uniform numbers from (0, 1]."""
    total, product = 0.0, 1.0
    for j in range(0, d, 2):
        u, v = _two_uniforms(key, counter, words)
        product *= 1.0 - u
        if j + 1 < d:
            product *= 1.0 - v
        if (j + 2) % _TOGETHER == 0 or j + 2 >= d:
            total -= log(product)
            product = 1.0
    return total


@compiled
def draw_vectors(
    key: Words, purpose: int, t: int, sites: NDArray[np.int64], directed: bool, scales: Array, out: Array
) -> None:
    """Fill `out`, (sites, repeats, d), with the random vectors of round t; `scales` has one scale per site.

    The vectors are scale times standard normal vectors. If `directed`, they have a uniformly random direction
    and the length Gamma(d) / scale instead.
    """
    words, counter = np.empty(4, dtype=np.uint64), np.empty(4, dtype=np.uint64)
    count, repeats, d = out.shape
    for i in range(count):
        for r in range(repeats):
            counter[0], counter[1] = np.uint64(0), np.uint64(t)
            counter[2], counter[3] = np.uint64(sites[i]), np.uint64(8 * r + purpose)
            e, size = out[i, r], scales[i]
            _normals(key, counter, words, e)
            if directed:
                length = dot(e, e)
                while length == 0.0:
                    _normals(key, counter, words, e)
                    length = dot(e, e)
                size = _gamma(key, counter, words, d) / scales[i] / math.sqrt(length)
            for j in range(d):
                e[j] *= size
