"""Refusals: what was turned away, said once per sender and kind, however often it is tried."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable

log = logging.getLogger("taciturn.site")


class Refusals:
    """Who sent what that was not accepted. Counts stay here; they never leave the site.

    `connected` says who is on the line; whoever is missing may be the caller without a name.
    """

    def __init__(self) -> None:
        self.connected: Callable[[], set[str]] = set
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def refuse(self, sender: str, kind: str, message: str) -> None:
        """Count it, and log it the first time."""
        with self._lock:
            self._counts[sender, kind] += 1
            first = self._counts[sender, kind] == 1
        if first:
            log.warning("refused, from %s: %s", sender, message)

    def counts(self) -> dict[tuple[str, str], int]:
        """How often, by sender and kind."""
        with self._lock:
            return dict(self._counts)
