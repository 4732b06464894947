"""Whereabouts: which round each site is in and whom it waits for, as far as the neighbours say.

A site that waits asks its neighbours, who answer for themselves and with what they have heard of others. So
it can say who really holds up the run: where alpha waits for beta and beta for gamma, that is gamma. It is
for people to read. Nothing of it is signed, and nothing that a site does depends on it.

    offset  size   per site, at most MOST
    0       2      its place in the job's list
    2       4      the round it is in, signed
    6       4      how many tenths of a second ago that was
    10      1      k, at most 8
    11      2 k    whom it waits for
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

ENTRY = struct.Struct("<HiIB")
MOST, NAMED = 96, 8  # sites in one answer, names that each waits for
FADES = 60.0  # seconds after which nobody knows any more


class Position(NamedTuple):
    """The round of a site, whom it waits for, and when that was so (monotonic clock)."""

    t: int
    waits_for: tuple[int, ...]
    at: float


class Whereabouts:
    """What one site knows of all; `own` is its number. Told by the network's threads, read by any.

    since : when the present wait began, by the wall clock; 0 while there is none.
    """

    def __init__(self, own: int, names: Sequence[str]) -> None:
        self.own, self.names, self.since = own, tuple(names), 0.0
        self._known: dict[int, Position] = {}
        self._lock = threading.Lock()

    def be(self, t: int, missing: Sequence[str], since: float = 0.0) -> None:
        """This site is in round t and waits for `missing`, or for nobody."""
        waits_for = tuple(self.names.index(name) for name in missing if name in self.names)
        self.since = since if waits_for else 0.0
        with self._lock:
            self._known[self.own] = Position(t, waits_for, time.monotonic())

    def known(self) -> dict[int, Position]:
        """Every position that is not too old."""
        now = time.monotonic()
        with self._lock:
            return {j: p for j, p in sorted(self._known.items()) if j == self.own or now - p.at < FADES}

    def pack(self) -> bytes:
        """What this site answers; the latest first."""
        now, known = time.monotonic(), self.known()
        if self.own in known:
            known[self.own] = known[self.own]._replace(at=now)
        latest = sorted(known.items(), key=lambda entry: -entry[1].at)[:MOST]
        return b"".join(
            ENTRY.pack(j, p.t, min(2**32 - 1, int(10 * (now - p.at))), len(p.waits_for[:NAMED]))
            + struct.pack(f"<{len(p.waits_for[:NAMED])}H", *p.waits_for[:NAMED])
            for j, p in latest
        )

    def told(self, data: bytes) -> None:
        """A neighbour's answer: the most recent report about another site wins."""
        now = time.monotonic()
        with self._lock:
            for j, t, tenths, waits_for in _entries(data, len(self.names)):
                at, known = now - tenths / 10, self._known.get(j)
                if j != self.own and (known is None or known.at < at):
                    self._known[j] = Position(t, waits_for, at)

    def blockers(self) -> tuple[str, ...]:
        """Who holds up this site in the end: those it waits for who do not themselves wait for somebody."""
        known = self.known()
        first = known[self.own].waits_for if self.own in known else ()
        seen, left, found = {self.own}, list(first), set()
        while left:
            j = left.pop()
            if j in seen:
                continue
            seen.add(j)
            if j in known and known[j].waits_for:
                left += known[j].waits_for
            else:
                found.add(j)
        return tuple(self.names[j] for j in sorted(found))


def _entries(data: bytes, sites: int) -> list[tuple[int, int, int, tuple[int, ...]]]:
    """The entries of an answer, up to the first that is invalid."""
    found: list[tuple[int, int, int, tuple[int, ...]]] = []
    place = 0
    while place + ENTRY.size <= len(data) and len(found) < MOST:
        j, t, tenths, k = ENTRY.unpack_from(data, place)
        place += ENTRY.size + 2 * k
        if k > NAMED or place > len(data) or j >= sites:
            break
        waits_for = struct.unpack_from(f"<{k}H", data, place - 2 * k)
        if max(waits_for, default=0) >= sites:
            break
        found.append((j, t, tenths, waits_for))
    return found
