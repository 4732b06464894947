"""Refusals: rejected frames (signed messages) and connections, logged once per sender and kind."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable

from ...core.errors import one_line

LASTING = ("job", "version")  # kinds of refusals that waiting does not resolve
MOST_TOLD = 3  # the most explanations that are logged for one sender, because a sender may change them

log = logging.getLogger("taciturn.site")


def _spell_out(record: logging.LogRecord) -> bool:
    """Put a neighbour's text on one line, with control characters escaped, so that it is safe to log."""
    record.msg, record.args = one_line(record.getMessage()), None
    return True


log.addFilter(_spell_out)


class Refusals:
    """Counts of refusals by sender and kind. Only this site's own log and metrics show them.

    connected : a function that returns the names of the connected sites. A rejected client without a name may
        be one of the sites that are not connected.
    """

    def __init__(self) -> None:
        self.connected: Callable[[], set[str]] = set
        self._counts: Counter[tuple[str, str]] = Counter()
        self._reasons: dict[str, str] = {}
        self._explained: dict[tuple[str, str], str] = {}
        self._told: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def refuse(self, sender: str, kind: str, message: str) -> None:
        """Count a refusal, and log it the first time."""
        with self._lock:
            self._counts[sender, kind] += 1
            if kind in LASTING and (sender, kind) not in self._explained:
                self._reasons[sender] = message
            first = self._counts[sender, kind] == 1
        if first:
            facts = {"event": "refused", "sender": sender, "kind": kind}
            log.warning("refused data from %s: %s", sender, message, extra={"facts": facts})

    def explain(self, sender: str, kind: str, words: str) -> None:
        """Log why frames of `sender` were refused, once the reason is known."""
        with self._lock:
            message = f"{self._reasons.get(sender, '')}: {words}"
            known, self._reasons[sender] = self._explained.get((sender, kind)), message
            self._explained[sender, kind] = words
            self._told[sender, kind] += known != words
            first = known != words and self._told[sender, kind] <= MOST_TOLD
        if first:
            facts = {"event": "explained", "sender": sender, "kind": kind}
            log.warning("reason for the refusal of %s: %s", sender, words, extra={"facts": facts})

    def accept(self, sender: str) -> None:
        """Forget the reason: `sender` now has the same job and release, for example after a correction."""
        with self._lock:
            self._reasons.pop(sender, None)
            self._explained = {key: words for key, words in self._explained.items() if key[0] != sender}

    def reason(self, sender: str) -> str:
        """Why all frames of `sender` are rejected until an operator acts; "" if there is no reason."""
        with self._lock:
            return self._reasons.get(sender, "")

    def counts(self) -> dict[tuple[str, str], int]:
        """The number of refusals by sender and kind."""
        with self._lock:
            return dict(self._counts)
