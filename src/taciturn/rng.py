"""Random numbers: real runs use a cryptographic generator without a seed, simulations use seeded streams.

A generator serves one site, one round t, one purpose (such as the noise), and one repeat. A repeat is one of
several independent runs of a simulation.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
import time
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from randomgen import ChaCha

from .core import checks
from .core.types import Array

Purpose = Literal["start", "noise", "output", "deal", "proxy"]
"""What the random numbers are for: the first models, the noise, the output noise (docs/glossary.md), the
division of rows among sites, or the public rows for a plan."""
_PURPOSES: dict[str, int] = {"start": 0, "noise": 1, "output": 2, "deal": 3, "proxy": 4}


class Streams(Protocol):
    """The source of a site's randomness."""

    simulated: ClassVar[bool]

    def generator(self, *, repeat: int, site: int, purpose: Purpose, t: int) -> np.random.Generator:
        """A generator for one repeat, site, purpose and round. The next call may reset this generator."""
        ...


class SeededStreams:
    """Every draw is a pure function of (seed, repeat, site, purpose, t), so the noise gives no privacy.

    Adding a site, a repeat or a round changes no other draw, and a run can resume at any round. The generator
    is Philox. The first four values determine its key, and the round determines its counter. Only one thread
    may use the generators of a site. `vectors` draws for many sites at once, but other numbers than
    `generator`.
    """

    simulated: ClassVar[bool] = True

    def __init__(self, seed: int) -> None:
        self.seed = checks.whole("seed", seed)
        self._generators: dict[tuple[int, int, int], np.random.Generator] = {}
        self._key = np.random.SeedSequence(self.seed).generate_state(2).astype(np.uint64)

    def vectors(
        self, purpose: Purpose, t: int, sites: NDArray[np.int64], scales: Array, out: Array, *, directed: bool
    ) -> None:
        """Fill `out`, of shape (sites, repeats, d), with Gaussian noise.

        `scales` has the standard deviation for each site. If `directed` is True, the noise is norm noise
        (`NormNoise`), and `scales` has the rate for each site.
        """
        from .kernels.philox import draw_vectors  # imported late: this loads numba, which is slow

        draw_vectors(self._key, _PURPOSES[purpose], t, sites, directed, scales, out)

    def generator(self, *, repeat: int, site: int, purpose: Purpose, t: int) -> np.random.Generator:
        name = (repeat, site, _PURPOSES[purpose])
        generator = self._generators.get(name)
        if generator is None:
            generator = np.random.Generator(
                np.random.Philox(np.random.SeedSequence(self.seed, spawn_key=name))
            )
            self._generators[name] = generator
        bits = generator.bit_generator
        state = dict(bits.state)
        state["state"]["counter"] = np.array([0, 0, 0, t], dtype=np.uint64)
        state.update(buffer_pos=4, has_uint32=0, uinteger=0)
        bits.state = state
        return generator


class _ProcessKey:
    """A key of 256 bits from the operating system. Each process has one; a forked child draws a new key.

    If the image of a virtual machine is resumed twice, both copies have the same key and the same counter,
    and neither copy can detect this. If both added the same noise to different messages, the difference of
    the messages would contain no noise. So every derived key also depends on the time and on fresh bytes from
    the system.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._renew()
        os.register_at_fork(after_in_child=self._after_fork)

    def _renew(self) -> None:
        self._key = os.urandom(32)
        self._counter = itertools.count()

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # a new lock: another thread may have held the old one
        self._renew()

    def derive(self) -> int:
        """Return a unique key: a counter, the time and fresh bytes, hashed with the process's key."""
        with self._lock:
            count, key = next(self._counter), self._key
        fresh = count.to_bytes(16, "little") + time.time_ns().to_bytes(16, "little") + os.urandom(32)
        digest = hashlib.blake2b(fresh, key=key, digest_size=32, person=b"taciturn-noise")
        return int.from_bytes(digest.digest(), "little")


_PROCESS_KEY = _ProcessKey()


class SecureStreams:
    """Each call of `generator` returns a ChaCha20 generator with a new 256-bit key. There is no seed."""

    simulated: ClassVar[bool] = False

    def generator(self, *, repeat: int, site: int, purpose: Purpose, t: int) -> np.random.Generator:
        return np.random.Generator(ChaCha(key=_PROCESS_KEY.derive(), rounds=20))


def streams_of(seed: int | None) -> Streams:
    """The secret streams of a real run if `seed` is None, else the reproducible streams of a simulation."""
    return SecureStreams() if seed is None else SeededStreams(seed)
