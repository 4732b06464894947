"""Waiting for others: ask again, say who is silent and since when, and stop cleanly after a stated time.

All of it by the monotonic clock; a clock that is set forward or back changes only the dates in the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import NeighbourFailed

log = logging.getLogger("taciturn.site")

SOON = 0.05  # seconds after a link came up: its other end must have told what it answers to
FIRST, LONGEST = 0.5, 5.0  # seconds before the first question, and most between two
SAY = 10.0  # seconds of silence before it is worth a line; then ten times as long each time


@dataclass
class Waiting:
    """How one site waits.

    pause : block until something may have changed, or for that many seconds.
    links : how many links came up so far; one more, and it is time to ask again.
    note : told who is silent and since when (wall clock), for `status`.
    why : a reason to add to a name, where one can be found.
    look : told at every turn who is missing and since when, in the end that nobody is.
    hint : something to add to what is said of a silence.
    """

    patience: float
    pause: Callable[[float], None]
    links: Callable[[], int]
    note: Callable[[Sequence[str], float], None]
    why: Callable[[str], str]
    quiet: bool = False
    look: Callable[[Sequence[str], float], None] = lambda names, since: None
    hint: Callable[[], str] = str

    def until(
        self,
        missing: Callable[[], list[str]],
        ask: Callable[[list[str]], None],
        what: str,
        *,
        longest: float = LONGEST,
    ) -> bool:
        """Return True once nobody is missing, False when patience is at its end.

        Nobody is asked while the frames come in: a question for each that is on its way, from every site,
        would hold up all of them.
        """
        begun, began_at, fewest = time.monotonic(), time.time(), -1
        gap = min(FIRST, longest)
        ask_at, links = begun + gap, self.links()
        say_at, say_gap = begun + min(SAY, self.patience / 2), SAY
        while names := missing():
            self.look(names, began_at)
            now = time.monotonic()
            if now - begun >= self.patience:
                return False
            if fewest < 0 or len(names) < fewest:
                gap, fewest = min(FIRST, longest), len(names)
                ask_at = now + gap
            if self.links() != links:
                links, gap, ask_at = self.links(), SOON, min(ask_at, now + SOON)
            if now >= ask_at:
                ask(names)
                gap = min(2 * gap, longest)
                ask_at = now + gap
            if now >= say_at:
                if not self.quiet:
                    self._say(names, began_at, what)
                say_at, say_gap = now + say_gap, 10 * say_gap
            self.pause(max(0.0, min(ask_at, say_at, begun + self.patience) - now))
        self.look((), began_at)
        return True

    def need(self, missing: Callable[[], list[str]], ask: Callable[[list[str]], None], what: str) -> None:
        """Wait as `until` does; where patience ends, stop with everything that is needed to go on."""
        began_at = time.time()
        if not self.until(missing, ask, what):
            names = missing()
            raise NeighbourFailed(
                f"{_names(names)} silent since {_clock(began_at)} ({what}){self.hint()}; stopped after "
                f"{self.patience:g} s. Everything is kept: run the same command to go on."
            )

    def _say(self, names: list[str], since: float, what: str) -> None:
        self.note(names, since)
        reasons = "; ".join(reason for reason in map(self.why, names) if reason)
        log.warning(
            "waiting for %s since %s (%s)%s%s",
            _names(names),
            _clock(since),
            what,
            f": {reasons}" if reasons else "",
            self.hint(),
            extra={"facts": {"event": "waiting", "for": names, "since": since, "what": what}},
        )


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
