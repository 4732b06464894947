"""Frames of neighbours as they come in, kept for a process that is killed before its next commit.

A site commits what it has heard together with its own next release. Killed before that, it would not know
after its restart what a neighbour had sent last, and a neighbour whose state was put back would be told that
nothing of it is missing. So each frame is also appended to a file at once. Nothing waits for the disk: the
file outlives the process, not a power cut.

A record is its length, a checksum and the frame. Whatever is damaged is not read.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from ...errors import SiteError

NAME = "arrivals.bin"
ROOM = 2**20  # bytes besides the newest frames, after which the file is begun anew
_HEAD = struct.Struct("<II")


class Arrivals:
    """The file of one site, in a process that holds the lock of its state. Use it in a `with` block.

    frames, largest : how many frames are the newest of somebody at most, and bytes of one.
    """

    def __init__(self, folder: Path, frames: int, largest: int) -> None:
        path, self._most = folder / NAME, ROOM + 2 * frames * (largest + _HEAD.size)
        if path.exists() and not path.is_file():
            raise SiteError(f"{path}: must be a file, or not there yet.")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SiteError(f"{path}: cannot be opened: {error.strerror}.") from error
        self._size = os.fstat(self._file).st_size

    def note(self, data: bytes, newest: Iterable[bytes]) -> None:
        """Append a frame; now and then the file is begun anew with the newest ones.

        A disk that is full is said where it stops a release.
        """
        record = _record(data)
        try:
            if self._size + len(record) > self._most:
                os.ftruncate(self._file, 0)
                self._size, record = 0, b"".join(map(_record, newest))
            if os.write(self._file, record) == len(record):
                self._size += len(record)
            else:
                os.ftruncate(self._file, self._size)
        except OSError:
            return

    def read(self) -> list[bytes]:
        """All frames in it, the oldest first, up to the first record that is damaged."""
        kept, at, found = os.pread(self._file, self._most, 0), 0, []
        while at + _HEAD.size <= len(kept):
            size, check = _HEAD.unpack_from(kept, at)
            data = kept[at + _HEAD.size : at + _HEAD.size + size]
            if len(data) != size or zlib.crc32(data) != check:
                break
            found.append(data)
            at += _HEAD.size + size
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: object, where: TracebackType | None) -> None:
        os.close(self._file)


def _record(data: bytes) -> bytes:
    return _HEAD.pack(len(data), zlib.crc32(data)) + data
