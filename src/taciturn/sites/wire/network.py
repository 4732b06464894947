"""The network as one site sees it, in words: for its status, kept in a file that nothing depends on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ...core.files import write_whole
from .whereabouts import Whereabouts

FILE = "network.json"


@dataclass(frozen=True)
class SiteSeen:
    """One site: the round it is in, whom it waits for there, and when that was so, by this site's clock."""

    name: str
    round: int
    waits_for: tuple[str, ...]
    at: float


@dataclass(frozen=True)
class NetworkSeen:
    """All of which something is known.

    since : when this site's wait began, 0 if it does not wait.
    heard : the last round that was heard of each neighbour, and when.
    """

    sites: tuple[SiteSeen, ...] = ()
    blockers: tuple[str, ...] = ()
    since: float = 0.0
    heard: Mapping[str, tuple[int, float]] = field(default_factory=dict)

    def of(self, name: str) -> SiteSeen | None:
        """What is known of one site."""
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
    """For `status`, which reads the folder alone; a disk that is full is said elsewhere."""
    with suppress(OSError):
        write_whole(state / FILE, json.dumps(asdict(seen(whereabouts, heard))))


def read_seen(state: Path) -> NetworkSeen:
    """What was written last; nothing, if nothing of it can be read."""
    try:
        facts = json.loads((state / FILE).read_text(encoding="utf-8"))
        sites = tuple(
            SiteSeen(str(e["name"]), int(e["round"]), tuple(map(str, e["waits_for"])), float(e["at"]))
            for e in facts["sites"]
        )
        heard = {str(name): (int(t), float(at)) for name, (t, at) in facts["heard"].items()}
        return NetworkSeen(sites, tuple(map(str, facts["blockers"])), float(facts["since"]), heard)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return NetworkSeen()
