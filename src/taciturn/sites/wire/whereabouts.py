"""Whereabouts: the round of each site and the sites that it waits for, as the neighbours report.

A waiting site sends its neighbours a report as JSON, with an entry for each site that it has heard about: the
site's number in the job's list, its round, the age of the entry, and the sites that it waits for. So a site
can name the site that delays the run: if alpha waits for beta, and beta waits for gamma, gamma delays it.
People read the reports in logs and with `taciturn site status`. The reports are not signed, and the protocol
does not depend on them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from ...core.files import write_whole

FILE = "network.json"
MOST, NAMED = 96, 8  # the most entries in a report, and the most awaited sites in one entry
FADES = 10.0  # seconds after which an entry is too old; a waiting site reports twice a second

_Number = Annotated[int, Field(ge=0, lt=2**16)]
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Round = Annotated[int, Field(ge=-1, lt=2**31)]
_Entry = tuple[_Number, _Round, _Seconds, Annotated[list[_Number], Field(max_length=NAMED)]]
_REPORT = TypeAdapter(Annotated[list[_Entry], Field(max_length=MOST)])


class Position(NamedTuple):
    """The round of a site, the sites that it waits for, and the time of the report (monotonic clock)."""

    t: int
    waits_for: tuple[int, ...]
    at: float


class Whereabouts:
    """What one site knows about the positions of all sites. Any thread may read and write it.

    own : the number of this site in the job's list.
    since : when this site began to wait, by the wall clock; 0 while it does not wait.
    """

    def __init__(self, own: int, names: Sequence[str]) -> None:
        self.own, self.names, self.since = own, tuple(names), 0.0
        self._known: dict[int, Position] = {}
        self._lock = threading.Lock()

    def be(self, t: int, missing: Sequence[str], since: float = 0.0) -> None:
        """Set this site's round t and the sites that it waits for."""
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
        """The report of this site; the latest entries first."""
        now, known = time.monotonic(), self.known()
        if self.own in known:
            known[self.own] = known[self.own]._replace(at=now)
        latest = sorted(known.items(), key=lambda entry: -entry[1].at)[:MOST]
        return json.dumps([(j, p.t, round(now - p.at, 1), p.waits_for[:NAMED]) for j, p in latest]).encode()

    def told(self, data: bytes) -> None:
        """Store a neighbour's report, if it is valid. The most recent report about another site wins."""
        now, sites = time.monotonic(), len(self.names)
        with self._lock, suppress(ValidationError):
            for j, t, seconds, waits_for in _REPORT.validate_json(data):
                at, known = now - seconds, self._known.get(j)
                if j != self.own and max(j, *waits_for, 0) < sites and (known is None or known.at < at):
                    self._known[j] = Position(t, tuple(waits_for), at)

    def blockers(self) -> tuple[str, ...]:
        """The sites that this site waits for, directly or through others, and that wait for no other site."""
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


@dataclass(frozen=True)
class SiteSeen:
    """One site: its round, the sites that it waits for, and the time of the report (wall clock)."""

    name: str
    round: int
    waits_for: tuple[str, ...]
    at: float


@dataclass(frozen=True)
class NetworkSeen:
    """All sites about which this site has a report.

    blockers : the sites that delay this site.
    since : when this site began to wait; 0 if it does not wait.
    heard : for each neighbour, the round and the time of its last message.
    """

    sites: tuple[SiteSeen, ...] = ()
    blockers: tuple[str, ...] = ()
    since: float = 0.0
    heard: Mapping[str, tuple[int, float]] = field(default_factory=dict)

    def of(self, name: str) -> SiteSeen | None:
        """The report about one site."""
        return next((site for site in self.sites if site.name == name), None)


def seen(whereabouts: Whereabouts, heard: Mapping[str, tuple[int, float]] | None = None) -> NetworkSeen:
    """What a running site knows now."""
    names, shift = whereabouts.names, time.time() - time.monotonic()
    sites = tuple(
        SiteSeen(names[j], p.t, tuple(names[k] for k in p.waits_for), p.at + shift)
        for j, p in whereabouts.known().items()
    )
    return NetworkSeen(sites, whereabouts.blockers(), whereabouts.since, dict(heard or {}))


def write_seen(state: Path, whereabouts: Whereabouts, heard: Mapping[str, tuple[int, float]]) -> None:
    """Write the reports to the state folder, for `taciturn site status`; errors are ignored."""
    with suppress(OSError):
        write_whole(state / FILE, json.dumps(asdict(seen(whereabouts, heard))))


def read_seen(state: Path) -> NetworkSeen:
    """The reports that were written last; empty if they cannot be read."""
    with suppress(OSError, ValidationError):
        return TypeAdapter(NetworkSeen).validate_json((state / FILE).read_bytes())
    return NetworkSeen()


def clock(at: float) -> str:
    """A time of the wall clock as text, in the time zone of this machine."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
