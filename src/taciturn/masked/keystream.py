"""ChaCha20 [RFC 8439] as numbers mod 2^64, for many keys at once: nonce 0, from block 0 on, little-endian.

A key is used for one keystream only, so that the nonce may be 0. Compiled, since a site of a hundred expands
a hundred keys in every round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels.arithmetic import compiled

Words = NDArray[np.uint64]

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


@compiled
def add_keystreams(keys: Words, added: NDArray[np.bool_], total: Words) -> None:
    """total +- the keystream of every key mod 2^64: added where `added`, else taken off.

    keys : (count, 8), the eight 32-bit words of each key, little-endian, in 64 bits each.
    """
    state, block = np.zeros(16, dtype=np.uint64), np.zeros(16, dtype=np.uint64)
    state[0], state[1], state[2], state[3] = 0x61707865, 0x3320646E, 0x79622D32, 0x6B206574
    for k in range(keys.shape[0]):
        for j in range(8):
            state[4 + j] = keys[k, j]
        for first in range(0, len(total), 8):
            count = np.uint64(first // 8)
            state[12], state[13] = count & _LOW, count >> _32
            _block(state, block)
            for j in range(min(8, len(total) - first)):
                number = block[2 * j] | (block[2 * j + 1] << _32)
                if added[k]:
                    total[first + j] += number
                else:
                    total[first + j] -= number


@compiled
def _block(state: Words, x: Words) -> None:
    """One block of 16 words of 32 bits: twenty rounds, and the state added."""
    for j in range(16):
        x[j] = state[j]
    for _ in range(10):
        _quarter(x, 0, 4, 8, 12)
        _quarter(x, 1, 5, 9, 13)
        _quarter(x, 2, 6, 10, 14)
        _quarter(x, 3, 7, 11, 15)
        _quarter(x, 0, 5, 10, 15)
        _quarter(x, 1, 6, 11, 12)
        _quarter(x, 2, 7, 8, 13)
        _quarter(x, 3, 4, 9, 14)
    for j in range(16):
        x[j] = (x[j] + state[j]) & _LOW


@compiled
def _quarter(x: Words, a: int, b: int, c: int, d: int) -> None:
    """A quarter round on four of the words."""
    x[a] = (x[a] + x[b]) & _LOW
    x[d] = _rotate(x[d] ^ x[a], np.uint64(16))
    x[c] = (x[c] + x[d]) & _LOW
    x[b] = _rotate(x[b] ^ x[c], np.uint64(12))
    x[a] = (x[a] + x[b]) & _LOW
    x[d] = _rotate(x[d] ^ x[a], np.uint64(8))
    x[c] = (x[c] + x[d]) & _LOW
    x[b] = _rotate(x[b] ^ x[c], np.uint64(7))


@compiled
def _rotate(word: np.uint64, by: np.uint64) -> np.uint64:
    """A word of 32 bits, turned to the left."""
    return np.uint64(((word << by) | (word >> (_32 - by))) & _LOW)
