"""Refusals: rejected frames, logged once per sender and kind."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable

from ...core.errors import one_line

LASTING = ("job", "version")
"""Kinds that do not pass by waiting."""
MOST_TOLD = 3  # explanations of one sender that are worth a line: it may give a new one each time it is asked

log = logging.getLogger("taciturn.site")


def _spell_out(record: logging.LogRecord) -> bool:
    """What a neighbour's name or certificate says, on one line, whoever writes the log."""
    record.msg, record.args = one_line(record.getMessage()), None
    return True


log.addFilter(_spell_out)


class Refusals:
    """Counts of rejected frames by sender and kind. They never leave the site.

    `connected` says who is on the line; whoever is missing may be the caller without a name.
    """

    def __init__(self) -> None:
        self.connected: Callable[[], set[str]] = set
        self._counts: Counter[tuple[str, str]] = Counter()
        self._reasons: dict[str, str] = {}
        self._explained: dict[tuple[str, str], str] = {}
        self._told: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def refuse(self, sender: str, kind: str, message: str) -> None:
        """Count it, and log it the first time."""
        with self._lock:
            self._counts[sender, kind] += 1
            if kind in LASTING and (sender, kind) not in self._explained:
                self._reasons[sender] = message
            first = self._counts[sender, kind] == 1
        if first:
            facts = {"event": "refused", "sender": sender, "kind": kind}
            log.warning("refused, from %s: %s", sender, message, extra={"facts": facts})

    def explain(self, sender: str, kind: str, words: str) -> None:
        """More about something that was refused, once it is known."""
        with self._lock:
            message = f"{self._reasons.get(sender, '')}: {words}"
            known, self._reasons[sender] = self._explained.get((sender, kind)), message
            self._explained[sender, kind] = words
            self._told[sender, kind] += known != words
            first = known != words and self._told[sender, kind] <= MOST_TOLD
        if first:
            facts = {"event": "explained", "sender": sender, "kind": kind}
            log.warning("reason for the refusal of %s: %s", sender, words, extra={"facts": facts})

    def reason(self, sender: str) -> str:
        """Why all frames of `sender` are rejected until an operator acts; empty if they are not."""
        with self._lock:
            return self._reasons.get(sender, "")

    def counts(self) -> dict[tuple[str, str], int]:
        """How often, by sender and kind."""
        with self._lock:
            return dict(self._counts)
