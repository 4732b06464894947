"""The word of a process: who it is among copies of it, signed, so that one copy can prove another.

A neighbour that says 'I see two of you' may be mistaken, or lie. So every process that asks what a neighbour
knows of it shows a word with three numbers: its own, one that it draws anew each time it begins to ask, and
the fresh one of whichever other process it was shown last. Neighbours hand each the word of the other. A word
with this site's signature, from a process that is not this one, about the number that this one has just
drawn, can only come from a copy that is running now: no neighbour can make one, or keep one from before.

A word says too how the files of its process stand: where they were written, or moved. Of two that prove each
other, the moved one has to stop.

A word has the form of a frame that belongs to no run. How the files stand is in the first byte of its
`common`, which is zero in the words of releases that do not say it: they count and hand on such words alike.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from ..form import HELLO
from ..frame import NOTHING, Frame, FrameRefused, decode, size_cap

HERE = 2**32 - 2  # the attempt of a word
NUMBER = 8
_NUMBERS = struct.Struct(f"<{NUMBER}s{NUMBER}s{NUMBER}s")
LARGEST = size_cap(_NUMBERS.size)
_NOBODY = bytes(NUMBER)
MOST_MET = 16  # others that it is worth to answer at once


class Files(IntEnum):
    """How the files of a process stand, by the mark in them."""

    UNKNOWN = 0
    AT_HOME = 1  # they are the very ones that were written
    MOVED = 2  # put back, copied or moved, and nobody has vouched for them since

    @property
    def common(self) -> bytes:
        """As a word says it."""
        return bytes([self]) + NOTHING[1:]


_FILES = {files.common: files for files in Files}


class Word(NamedTuple):
    """Which process it is, what it has drawn last, what another one had, and how its files stand."""

    process: bytes
    fresh: bytes
    other: bytes
    files: Files = Files.UNKNOWN


def read_word(data: bytes) -> tuple[Word, Frame] | None:
    """A word and the frame that it came in, which nobody has checked yet; None if it is none."""
    try:
        frame = decode(data, largest=_NUMBERS.size)
    except FrameRefused:
        return None
    if (frame.attempt, frame.t, len(frame.message)) != (HERE, HELLO, _NUMBERS.size):
        return None
    process, fresh, other = _NUMBERS.unpack(frame.message)
    return Word(process, fresh, other, _FILES.get(frame.common, Files.UNKNOWN)), frame


class Here:
    """This process, among copies of it; asked by its own thread and the network's.

    seal : the numbers, and `common`, as a signed frame of this site (t = HELLO, attempt = HERE).
    believe : whether a frame was signed by this very site, for this job.
    files : how the files of this process stand now.
    proved : how those of the other processes stand that have signed the number this one drew last; empty if
        none has.
    """

    def __init__(
        self,
        seal: Callable[[bytes, bytes], bytes],
        believe: Callable[[Frame], bool],
        files: Callable[[], Files],
    ) -> None:
        self._seal, self._believe, self._files = seal, believe, files
        self._word = Word(os.urandom(NUMBER), os.urandom(NUMBER), _NOBODY)
        self._sealed = b""
        self._met: set[bytes] = set()
        self._lock = threading.Lock()
        self.proved: frozenset[Files] = frozenset()

    def renew(self) -> None:
        """Draw another number: what was signed until now proves nothing any more."""
        with self._lock:
            self._say(self._word._replace(fresh=os.urandom(NUMBER)))
            self._met.clear()
            self.proved = frozenset()

    def word(self) -> bytes:
        """What to show to whoever is asked."""
        files = self._files()
        with self._lock:
            if files is not self._word.files:
                self._say(self._word._replace(files=files))
            if not self._sealed:
                self._sealed = self._seal(_NUMBERS.pack(*self._word[:3]), files.common)
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
            if found[0].other == self._word.fresh:
                self.proved |= {found[0].files}
            news = fresh not in self._met and len(self._met) < MOST_MET
            self._met |= {fresh} if news else set()
        return news

    def _say(self, word: Word) -> None:
        self._word, self._sealed = word, b""
