"""Which sites a site waits for, and since when: for the log, the neighbours, and `taciturn site status`.

These reports are for people to read. The protocol does not depend on them. An attempt is a sequence of rounds
with fixed members.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ..files.site import Site
from ..protocol.frames import Kind
from ..protocol.machine import SiteProtocol
from ..transport.zenoh import ZenohLinks
from ..wire.probe import probe
from ..wire.whereabouts import Whereabouts, clock, write_seen

WRITE = 1.0  # seconds between two writes of the file that `taciturn site status` reads
# Seconds until the first line in the log (at most half of `patience`); later pauses are 10 s, 100 s, ...
SAY = 10.0
log = logging.getLogger("taciturn.site")


@dataclass
class WaitingRoom:
    """The sites that this site waits for, and since when; `place` is this site's phase, attempt and round."""

    site: Site
    protocol: SiteProtocol
    links: ZenohLinks
    whereabouts: Whereabouts
    heard: dict[str, tuple[int, float]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    place: tuple[str, int, int] = ("new", 0, 0)
    since: float = 0.0  # by the monotonic clock
    began_at: float = 0.0  # by the wall clock
    say_at: float = 0.0
    write_at: float = 0.0
    gap: float = SAY

    def note_heard(self) -> None:
        """Record, for each neighbour, the last round of which this site has received a message."""
        for slot, _ in self.protocol.board:
            name = self.site.job.names[slot.sender]
            if slot.kind in (Kind.COMMIT, Kind.MESSAGE) and name in self.site.neighbours:
                known = self.heard.get(name, (0, 0.0))
                if slot.t > known[0]:
                    self.heard[name] = slot.t, time.time()

    def look(self, *, last: bool = False) -> None:
        """Find the missing sites, report them to neighbours and in a file, and log a long wait."""
        names = tuple(self.site.job.names[i] for i in sorted(self.protocol.waits_for()))
        now, place = time.monotonic(), (self.protocol.phase, self.protocol.number, self.round)
        if not self.names or place != self.place:
            self.since, self.began_at, self.gap = now, time.time(), SAY
            self.say_at = now + min(SAY, self.site.file.patience / 2)
        self.names, self.place = names, place
        self.note_heard()
        self.whereabouts.be(self.round, names, self.began_at)
        if last or now >= self.write_at:
            self.write_at = now + WRITE
            with suppress(OSError):  # only for display: a full disk must not stop the run
                write_seen(self.site.state, self.whereabouts, self.heard)
        if names:
            self.links.say_where(self.whereabouts.pack())
        if names and now >= self.say_at:
            self.say_at, self.gap = now + self.gap, 10 * self.gap
            self._say(names)

    @property
    def round(self) -> int:
        """The round that this site is in; 0 before the first, the number of rounds plus 1 at the end."""
        protocol = self.protocol
        if protocol.phase in ("new", "look") or (protocol.attempt is None and not protocol.past):
            return 0
        return protocol.completed[1] + 1

    def what(self) -> str:
        """What this site waits for, as text: for example the start of the run, a round or a new attempt."""
        protocol, rounds = self.protocol, self.site.job.rounds
        if protocol.phase == "over":
            return "until it is done too"
        if protocol.finishing is not None:
            return "the early end"
        if self.round < 1:
            return "the start of the run"
        if protocol.phase == "meet":
            return "a new attempt"
        return f"round {self.round}" if self.round <= rounds else "the end"

    def hint(self) -> str:
        """The sites that delay the run, and those that want to finish it early, as text."""
        blockers, site = self.whereabouts.blockers(), self.site
        said = "" if set(blockers) <= set(self.names) else f"; held up by {', '.join(blockers[:5])}"
        finishers = [site.job.names[i] for i in self.protocol.finishers()]
        if finishers and self.protocol.phase == "meet":
            said += (
                f"; {', '.join(finishers[:5])} will release nothing more, to finish the run now; if you "
                "agree, stop this site and run: taciturn site finish"
            )
        return said

    def silence(self) -> str:
        """The text of the error after this site has waited for longer than `patience`."""
        since = clock(self.began_at or time.time())
        reasons = "; ".join(
            f"{name}: {why}" for name in self.names if (why := self.links.refusals.reason(name))
        )
        return (
            f"{_names(self.names)} silent since {since} ({self.what()}){self.hint()}"
            f"{f': {reasons}' if reasons else ''}; stopped after {self.site.file.patience:g} s. Everything "
            "is stored: run the same command to continue."
        )

    def _say(self, names: Sequence[str]) -> None:
        """Log the sites that this site waits for; a probe on a separate thread looks for the reason."""
        what, hint, since = self.what(), self.hint(), self.began_at
        connected = self.links.connected()

        def say() -> None:
            reasons = "; ".join(reason for name in names if (reason := self._why(name, connected)))
            log.warning(
                "waiting for %s since %s (%s)%s%s",
                _names(names),
                clock(since),
                what,
                f": {reasons}" if reasons else "",
                hint,
                extra={"facts": {"event": "waiting", "for": list(names), "since": since, "what": what}},
            )

        threading.Thread(target=say, daemon=True).start()

    def _why(self, name: str, connected: set[str]) -> str:
        if refused := self.links.refusals.reason(name):
            return f"{name}: {refused}"
        dials: Mapping[str, str] = self.site.dials()
        if name in connected or name not in dials:
            return ""
        return f"{name}: {why}" if (why := probe(self.site, name, dials[name])) else ""


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
