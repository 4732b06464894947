"""The processes of each neighbour that have asked of late, by the number in the word that each shows.

Whether a word is true is for the site to say whose name it has: nobody else acts on it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from .word import LARGEST, read_word

SEEN = 6.5  # seconds for which a process that asked counts as being there; those that wait ask more often
MOST_SEEN = 16  # processes of one name that are worth counting


class Askers:
    """Noted by the network's threads, for these names alone."""

    def __init__(self, names: Iterable[str]) -> None:
        self._words: dict[str, dict[bytes, tuple[float, bytes]]] = {name: {} for name in names}
        self._lock = threading.Lock()

    def note(self, name: str, shown: bytes) -> tuple[int, bytes]:
        """`name` asks, and shows a word: how many processes it has, and the latest word of another one."""
        found = read_word(shown) if len(shown) <= LARGEST else None
        process, now = b"" if found is None else found[0].process, time.monotonic()
        with self._lock:
            if name not in self._words:
                return 0, b""
            late = {k: word for k, word in self._words[name].items() if now - word[0] < SEEN}
            if found is not None and (process in late or len(late) < MOST_SEEN):
                late[process] = now, shown
            self._words[name] = late
        others = [word for k, word in late.items() if k != process]
        return len(late), max(others, default=(0.0, b""))[1]
