"""The word of a process: who it is among copies of it, signed, so that one copy can prove another.

A neighbour that says 'I see two of you' may be mistaken, or lie. So every process that asks what a neighbour
knows of it shows a word with three numbers: its own, one that it draws anew each time it begins to ask, and
the fresh one of whichever other process it was shown last. Neighbours hand each the word of the other. A word
with this site's signature, from a process that is not this one, about the number that this one has just
drawn, can only come from a copy that is running now: no neighbour can make one, or keep one from before.

A word has the form of a frame that belongs to no run.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable
from typing import NamedTuple

from ..form import HELLO
from ..frame import Frame, FrameRefused, decode, size_cap

HERE = 2**32 - 2  # the attempt of a word
NUMBER = 8
_NUMBERS = struct.Struct(f"<{NUMBER}s{NUMBER}s{NUMBER}s")
LARGEST = size_cap(_NUMBERS.size)
_NOBODY = bytes(NUMBER)
MOST_MET = 16  # others that it is worth to answer at once


class Word(NamedTuple):
    """Which process it is, what it has drawn last, and what another one had."""

    process: bytes
    fresh: bytes
    other: bytes


def read_word(data: bytes) -> tuple[Word, Frame] | None:
    """A word and the frame that it came in, which nobody has checked yet; None if it is none."""
    try:
        frame = decode(data, largest=_NUMBERS.size)
    except FrameRefused:
        return None
    if (frame.attempt, frame.t, len(frame.message)) != (HERE, HELLO, _NUMBERS.size):
        return None
    return Word(*_NUMBERS.unpack(frame.message)), frame


class Here:
    """This process, among copies of it; asked by its own thread and the network's.

    seal : the numbers as a signed frame of this site (t = HELLO, attempt = HERE).
    believe : whether a frame was signed by this very site, for this job.
    proved : whether another process has signed the number that this one drew last.
    """

    def __init__(self, seal: Callable[[bytes], bytes], believe: Callable[[Frame], bool]) -> None:
        self._seal, self._believe = seal, believe
        self._word = Word(os.urandom(NUMBER), os.urandom(NUMBER), _NOBODY)
        self._sealed = b""
        self._met: set[bytes] = set()
        self._lock = threading.Lock()
        self.proved = False

    def renew(self) -> None:
        """Draw another number: what was signed until now proves nothing any more."""
        with self._lock:
            self._say(self._word._replace(fresh=os.urandom(NUMBER)))
            self._met.clear()
            self.proved = False

    def word(self) -> bytes:
        """What to show to whoever is asked."""
        with self._lock:
            if not self._sealed:
                self._sealed = self._seal(_NUMBERS.pack(*self._word))
            return self._sealed

    def shown(self, data: bytes) -> bool:
        """A neighbour shows the word of some other process with this site's name, it says.

        Returns whether it is worth to show one's own again at once: the other one has not been met before.
        """
        found = read_word(data)
        if found is None or found[0].process == self._word.process or not self._believe(found[1]):
            return False
        fresh = found[0].fresh
        with self._lock:
            if fresh != self._word.other:
                self._say(self._word._replace(other=fresh))
            self.proved = self.proved or found[0].other == self._word.fresh
            news = fresh not in self._met and len(self._met) < MOST_MET
            self._met |= {fresh} if news else set()
        return news

    def _say(self, word: Word) -> None:
        self._word, self._sealed = word, b""
