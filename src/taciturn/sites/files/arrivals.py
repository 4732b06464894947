"""Frames of neighbours as they come in, kept for a process that is killed before its next commit.

A site commits what it has heard together with its own next release. Killed before that, it would not know
after its restart what a neighbour had sent last, and a neighbour whose state was put back would be told that
nothing of it is missing. So each frame is also appended to a file at once. Nothing waits for the disk (a sync
for each frame would be several milliseconds): the file outlives the process, not a power cut. But it knows of
one: at its head, on disk before the first frame comes in, stands under which boot of the machine it is
written, and at its end that it was closed. Where neither fits, frames may be missing, and whose site this is
vouches for no neighbour before it has heard it again.

A record is its length, a checksum and the frame. Whatever is damaged is not read.
"""

from __future__ import annotations

import os
import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from ...errors import SiteError, WrongFiles

NAME = "arrivals.bin"
ROOM = 2**20  # bytes besides the newest frames, after which the file is begun anew
MAGIC = b"taciturn-arrivals/2\0"
_TOP = struct.Struct("<20s36sBi")  # the form, the boot of the machine, how it stands, `doubt`
_OPEN, _CLOSED, _GAP = range(3)
_HEAD = struct.Struct("<II")
_NO_BOOT = str(uuid.uuid4()).encode()  # where the system does not say, each process is a boot of its own


def boot_id() -> bytes:
    """Another one each time that the machine was started."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()[:36]
    except OSError:
        return _NO_BOOT


class Arrivals:
    """The file of one site, in a process that holds the lock of its state. Use it in a `with` block.

    frames, largest : how many frames are the newest of somebody at most, and bytes of one.
    whole : whether all that came in before is in it: no power was lost since, and no disk was full.
    doubt : a neighbour of whom this round is not known may have sent more than is known; 0 where none has.
    """

    def __init__(self, folder: Path, frames: int, largest: int) -> None:
        path, self._most = folder / NAME, ROOM + 2 * frames * (largest + _HEAD.size)
        if path.exists() and not path.is_file():
            raise WrongFiles(f"{path}: must be a file, or not there yet.")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError as error:
            raise WrongFiles(f"{path}: this user may not read it and write to it.") from error
        except OSError as error:
            raise SiteError(f"{path}: cannot be opened: {error.strerror}.") from error
        self.whole, self.doubt, self._begun, self._stands = False, 0, False, _OPEN
        self._size = self._read_top()
        *_, (end, _) = [(_TOP.size, b""), *self._records()]
        self.whole, self._size = self.whole and end == self._size, end  # what is noted now can be read again

    def _read_top(self) -> int:
        """What the head says; how long the file is, as far as it is one of this form."""
        top = os.pread(self._file, _TOP.size, 0)
        if len(top) < _TOP.size or not top.startswith(MAGIC):
            return _TOP.size
        _, boot, stands, self.doubt = _TOP.unpack(top)
        self.whole = stands == _CLOSED or (stands == _OPEN and boot == boot_id())
        return os.fstat(self._file).st_size

    def begin(self, doubt: int) -> None:
        """Before the first frame comes in: what to know of this file after a power cut, on disk."""
        self.doubt, self._begun = doubt, True
        try:
            os.ftruncate(self._file, self._size)
            self._write_top(_OPEN)
        except OSError as error:
            raise SiteError(f"{NAME}: cannot be written: {error.strerror}.") from error

    def _write_top(self, stands: int, *, sync: bool = True) -> None:
        self._stands = stands
        os.pwrite(self._file, _TOP.pack(MAGIC, boot_id(), stands, self.doubt), 0)
        if sync:
            os.fsync(self._file)

    def note(self, data: bytes, newest: Iterable[bytes]) -> None:
        """Append a frame; now and then the file is begun anew with the newest ones.

        A disk that is full is said where it stops a release; here it is noted that frames are missing.
        """
        record = _record(data)
        try:
            if self._size + len(record) > self._most:
                self._begin_anew(b"".join(map(_record, newest)))
                return
            if os.pwrite(self._file, record, self._size) == len(record):
                self._size += len(record)
                return
            os.ftruncate(self._file, self._size)
        except OSError:
            pass
        if self._stands != _GAP:
            with suppress(OSError):
                self._write_top(_GAP)

    def _begin_anew(self, records: bytes) -> None:
        """These records in the place of all; killed on the way, the file says that frames are missing."""
        stood = self._stands
        self._write_top(_GAP, sync=False)
        os.ftruncate(self._file, _TOP.size)
        self._size = _TOP.size
        if os.pwrite(self._file, records, _TOP.size) == len(records):
            self._size += len(records)
            self._write_top(stood, sync=False)

    def read(self) -> list[bytes]:
        """All frames in it, the oldest first, up to the first record that is damaged."""
        return [data for _, data in self._records()]

    def _records(self) -> Iterator[tuple[int, bytes]]:
        """Where each record ends, and its frame; up to the first that is damaged."""
        kept, at = os.pread(self._file, self._most, 0)[: self._size], _TOP.size
        while at + _HEAD.size <= len(kept):
            size, check = _HEAD.unpack_from(kept, at)
            data = kept[at + _HEAD.size : at + _HEAD.size + size]
            if len(data) != size or _sum(data) != check:
                return
            at += _HEAD.size + size
            yield at, data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: object, where: TracebackType | None) -> None:
        try:
            if self._begun and self._stands == _OPEN:
                os.fsync(self._file)
                self._write_top(_CLOSED)
        except OSError:
            return  # it is not known to be closed, then
        finally:
            os.close(self._file)


def _record(data: bytes) -> bytes:
    return _HEAD.pack(len(data), _sum(data)) + data


def _sum(data: bytes) -> int:
    """A checksum that zeros do not have: a power cut may leave them at the end of a file."""
    return zlib.crc32(data, 1)
