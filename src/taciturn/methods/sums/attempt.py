"""Masked sums between sites that join and leave: sums in which random masks hide what each site adds.

An attempt is a part of a run with fixed members P. It begins after round `base` of the plan. It may spend the
share `left` of mu^2, the squared privacy budget, that earlier attempts have not spent. The standard deviation
of its noise in round t is

    s_t = Delta_t / (mu sqrt(left w_t / sum_{k > base} w_k) sqrt(h)),      h = |P| - c

with w_t the round's share of mu^2 in the plan, Delta_t the sensitivity, and c the number of colluding sites.
If some sites are missing, a sum (unless it is a count) is multiplied by n / n', where n is the number of
records (or persons) of all sites, and n' that of the members.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...core.errors import ParameterError
from ...core.types import Array
from ...privacy.facts import Charge, RunFacts
from ...privacy.sums import CLIPPED, COUNTS, GRADIENT, MOMENTS, VECTORS, WHITENED, AttemptFacts, SumFacts
from ...rng import Streams
from ..base import Audience
from .masks import Message
from .node import noisy_share
from .pairs import PairGraph
from .program import PrivateHalf, SumTables
from .sums import MOST_STD, open_sum

_ROUNDED = 1 + 1e-9  # noise and costs are rounded up by this factor
# for each kind of sum, a bound on (norm of the sum without noise) / (sensitivity x units); 1 for other kinds
_FACTOR = {GRADIENT: 0.5, VECTORS: 0.5, MOMENTS: math.sqrt(0.5), COUNTS: math.sqrt(0.5)}
_CHANCE = 7.0  # noise is longer than sqrt(length) + 7 standard deviations with probability below 2e-15


@dataclass(frozen=True, eq=False)
class SumsSite:
    """One site in a run of masked sums, for all attempts.

    half : computes what this site's rows add to a sum.
    samples : the number of records (or persons) of every site.
    places : the most sites at which one person may have rows.
    """

    number: int
    tables: SumTables
    half: PrivateHalf
    streams: Streams
    samples: tuple[int, ...]
    places: int = 1

    common = True
    """All sites have the same public state."""
    least = 2
    """The number of rounds after which a model exists: the first sum alone gives no model."""

    @property
    def rounds(self) -> int:
        return self.tables.rounds

    def start(self) -> Any:
        """The program's state before its first sum."""
        return self.tables.program.start(1)

    def result(self, state: Any, last: Mapping[int, bytes]) -> Array:
        """The result of the program."""
        return np.asarray(self.tables.program.result(state)[0])

    def coordinates(self, state: Any) -> None:
        """None: the sites do not transform their rows."""

    def vector(self, state: Any) -> bytes:
        """This site's own state in its first message (hello): empty, since all sites have the same state."""
        return b""

    def connected(self, members: Sequence[int]) -> bool:
        """True: every member sends to all members, whatever the links are."""
        return True

    @property
    def colluding(self) -> int:
        most = len(self.samples) - 1
        return most if self.tables.colluding is None else min(self.tables.colluding, most)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """(Delta_t / s_t)^2 of each planned sum: the squared ratio of sensitivity and noise."""
        return tuple((self._units(entry) / entry.std) ** 2 for entry in self.tables.sums)

    def spent(self, base: int, left: float, upto: int) -> float:
        """The share of mu^2 that rounds base + 1 .. upto of an attempt cost, rounded up."""
        whole = sum(self.weights[base:])
        return left * sum(self.weights[base:upto]) / whole * _ROUNDED if whole else 0.0

    def attempt(self, members: Sequence[int], base: int, left: float) -> SumsAttempt | None:
        """This site in an attempt with these members after round `base`; None if the attempt is impossible.

        It is impossible if no round remains, if all members may collude, or if the rest of the budget is so
        small that floats cannot represent the noise. An attempt that begins a run in whitened coordinates
        (`base` = 0) is also impossible if a site is missing, or if a part of the budget is spent.
        """
        chosen = tuple(members)
        honest = len(chosen) - self.colluding
        if base >= self.rounds or honest < 1:
            return None
        if len(chosen) == len(self.samples) and base == 0 and left == 1.0:
            return SumsAttempt(self, self.tables, chosen, 1.0)
        if base == 0 and any(entry.part in (WHITENED, CLIPPED) for entry in self.tables.sums):
            return None  # the bounds of whitened rows were derived from the noise of all sites
        budget = left * sum(self.weights) / self.tables.pairs.honest(self.colluding)
        whole, sums = sum(self.weights[base:]), list(self.tables.sums)
        for k in range(base, self.rounds):
            share = budget * self.weights[k] / whole
            if not share > 0:
                return None
            std = self._units(sums[k]) / math.sqrt(share * honest) * _ROUNDED
            if not std <= MOST_STD:
                return None
            sums[k] = replace(sums[k], std=std)
        scale = sum(self.samples) / sum(self.samples[i] for i in chosen)
        noise = tuple(entry.grid * entry.std * math.sqrt(len(chosen)) * scale for entry in sums)
        program = self.tables.program
        if is_dataclass(program) and hasattr(program, "noise"):
            program = replace(program, noise=noise)  # type: ignore[type-var]
        pairs = PairGraph.against(self.colluding, len(chosen))
        return SumsAttempt(
            self, replace(self.tables, sums=tuple(sums), pairs=pairs, program=program), chosen, scale
        )

    def _units(self, entry: SumFacts) -> float:
        """Delta in grid steps: how far one record or person moves the sum, with all rounding errors."""
        again = self.places * (2 * entry.stray / entry.grid + math.sqrt(entry.length))
        return entry.reach + again


@dataclass(frozen=True, eq=False)
class SumsAttempt:
    """One site in one attempt. Its messages are little-endian whole numbers mod 2^64. `scale` : n / n'."""

    site: SumsSite
    tables: SumTables
    members: tuple[int, ...]
    scale: float

    def hears(self, t: int) -> Audience:
        return "everybody"

    def padded(self, t: int) -> bool:
        """True: masks hide the messages, so every member commits to its message before any member sends."""
        return True

    def partners(self) -> tuple[int, ...]:
        """The numbers of the sites that share a mask with this site."""
        place = self.members.index(self.site.number)
        return tuple(self.members[k] for k in self.tables.pairs.partners(place))

    def neighbours(self) -> tuple[int, ...]:
        """All other members: every site receives the messages of all members."""
        return tuple(i for i in self.members if i != self.site.number)

    def size(self, t: int) -> int:
        """The length of a message of round t in bytes."""
        return 8 * self.tables.sums[t - 1].length

    def facts(self, t: int) -> bytes:
        """A hash of the settings of round t, on which all members must agree before anything is sent."""
        entry = self.tables.sums[t - 1]
        words = (entry.part, entry.length, entry.grid.hex(), entry.std.hex(), entry.sensitivity.hex())
        return hashlib.sha256(repr((t, words, self.members)).encode()).digest()

    def message(self, state: Any) -> bytes | None:
        """What this site adds to the next sum, with fresh noise, before masks are added."""
        entry, query = self.tables.sums[state.t], self.tables.program.query(state)
        site = self.site
        share = noisy_share(site.half, query, entry, site.streams, site=site.number, repeats=1)
        return np.asarray(share, dtype="<i8").tobytes()

    def charge(self, t: int) -> Charge:
        """The cost of the message of round t."""
        return Charge(self.site.number, t, scale=self.tables.sums[t - 1].std)

    def sum_facts(self, t: int) -> SumFacts:
        """The sum of round t as a certificate states it."""
        return self.tables.sums[t - 1]

    def heard(self, t: int, messages: Mapping[int, bytes]) -> bytes:
        """The sum mod 2^64 of all members' messages."""
        if set(messages) != set(self.members):
            raise ParameterError("`messages` must contain exactly one message from each site in `members`.")
        total: Message = np.zeros(self.tables.sums[t - 1].length, dtype=np.uint64)
        for message in messages.values():
            total += np.frombuffer(message, dtype="<u8")
        return np.asarray(total, dtype="<u8").tobytes()

    def bound(self, t: int) -> float:
        """A bound on the norm of the sum of round t; honest sums exceed it with probability below 2e-15."""
        entry = self.tables.sums[t - 1]
        true = _FACTOR.get(entry.part, 1.0) * self._widest[entry.part] * self.tables.units
        std = entry.grid * entry.std * math.sqrt(len(self.members))
        return true + std * (math.sqrt(entry.length) + _CHANCE)

    @cached_property
    def _widest(self) -> dict[str, float]:
        """The largest sensitivity of the sums of each kind."""
        widest: dict[str, float] = {}
        for entry in self.tables.sums:
            widest[entry.part] = max(entry.sensitivity, widest.get(entry.part, entry.sensitivity))
        return widest

    def impossible(self, t: int, heard: bytes, messages: Mapping[int, bytes]) -> bool:
        """Whether the norm of the sum is too large for honest rows and noise; then a site lied or failed."""
        released = open_sum(np.frombuffer(heard, dtype="<u8"), self.tables.sums[t - 1].grid)
        return not float(np.linalg.norm(released)) <= self.bound(t)

    def blamed(self, t: int, messages: Mapping[int, bytes]) -> int | None:
        """None: the masks hide which site sent what."""
        return None

    def at_edge(self, t: int, messages: Mapping[int, bytes]) -> list[int]:
        """Empty: the masks hide which site is at the edge of the range."""
        return []

    def after(self, state: Any, own: bytes, heard: bytes) -> Any:
        """The state after a round in which the messages added up to `heard`."""
        entry = self.tables.sums[state.t]
        total = open_sum(np.frombuffer(heard, dtype="<u8").astype(np.uint64)[None, :], entry.grid)
        scale = 1.0 if entry.part == COUNTS else self.scale
        return self.tables.program.advance(state, total if scale == 1.0 else total * scale)


def certified_run(
    run: RunFacts, releases: Sequence[tuple[str, tuple[int, ...], SumFacts]], *, rest: Sequence[SumFacts] = ()
) -> RunFacts:
    """The facts of a run for the certificate of one site: they list the attempt of each release of this site.

    releases : the id of the attempt, its members, and the sum, for each release in order.
    rest : the sums of the last attempt that were planned but not released.
    """
    everybody = tuple(range(run.sites))
    whole = [entry for _, _, entry in releases] + list(rest)
    if all(members == everybody for _, members, _ in releases) and whole == list(run.sums):
        return run
    attempts: list[AttemptFacts] = []
    for k, (name, members, entry) in enumerate(releases, start=1):
        if not attempts or (attempts[-1].id, attempts[-1].members) != (name, members):
            attempts.append(AttemptFacts(name, members, k, entry.t))
    sums = tuple(replace(entry, t=k) for k, entry in enumerate(whole, start=1))
    return replace(run, rounds=len(sums), sums=sums, attempts=tuple(attempts))
