"""The high-water mark: the newest round that a site may have sent, stored outside the state folder.

Rounds belong to attempts: sequences of rounds with fixed members. The mark is raised after a message is
stored and before it is sent. A state that was restored from a backup lacks later messages, so it is below the
mark. If no random masks hide the job's messages, a site with a restored or moved state continues only if the
owner confirms that no newer state exists; the reports of neighbours cannot prove this. After that, all
figures of the run are lower bounds ('at least').
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ...core.canonical import canonical
from ...core.errors import SiteError, StateLost, WrongFiles

_MACHINE = ("/etc/machine-id", "/var/lib/dbus/machine-id")
SLOT = 512  # bytes; writes alternate between two slots, so that one slot is always intact
CONFIRM = (
    "Nothing is released. If you are sure that this is the newest state, run: taciturn site run "
    "site.toml --newest-state. All figures of the run will then say 'at least'."
)


@dataclass(frozen=True)
class Mark:
    """The newest round that was stored, its attempt, and a hash that identifies the state file (`place`).

    at_least : whether the site continued from a restored or moved state, so that it may have sent more.
    writes : how often the mark was written.
    """

    attempt: int
    round: int
    place: str
    at_least: bool = False
    writes: int = 0

    @property
    def reached(self) -> tuple[int, int]:
        """The position, by attempt and then by round."""
        return self.attempt, self.round


@dataclass(frozen=True)
class HighWaterMark:
    """The high-water marks of all runs that use one table, with one file for each run."""

    folder: Path

    def read(self, run: str) -> Mark | None:
        """The mark of a run; None before its first message."""
        try:
            data = Path(self._path(run)).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SiteError(f"{self._path(run)} cannot be read ({error.strerror}).") from error
        return self._parse(run, data) if data else None  # created, but stopped before the first write

    def check(self, run: str, attempt: int, round: int, place: str) -> None:
        """Raise `StateLost` if a state is below the mark, or if its file is not the one in the mark."""
        mark = self.read(run)
        if mark is None:
            return
        if mark.reached > (attempt, round):
            raise StateLost(
                f"this `state` was restored from a backup: it is at round {round} of attempt {attempt}, but "
                f"this site has already sent round {mark.round} of attempt {mark.attempt}. {CONFIRM}"
            )
        if mark.place != _digest(place):
            raise StateLost(
                f"this `state` was moved, copied or restored since round {mark.round} was stored. {CONFIRM}"
            )

    def confirm(self, run: str, attempt: int, round: int, place: str) -> None:
        """Set the mark to a state that was restored or moved; then all figures are lower bounds.

        A state that matches the mark changes nothing.
        """
        with self._locked(run) as (descriptor, mark):
            if mark is None or (mark.reached <= (attempt, round) and mark.place == _digest(place)):
                return
            self._write(descriptor, Mark(attempt, round, _digest(place), True, mark.writes))

    def raise_to(self, run: str, attempt: int, round: int, place: str) -> None:
        """Set the mark to a newer round. Raise `StateLost` if another process has set it higher."""
        with self._locked(run) as (descriptor, mark):
            if mark is None:
                self._write(descriptor, Mark(attempt, round, _digest(place)))
            elif mark.reached < (attempt, round):
                newer = Mark(attempt, round, _digest(place), mark.at_least, mark.writes)
                self._write(descriptor, newer)
            elif mark.reached > (attempt, round):
                raise StateLost(
                    f"this site has already sent round {mark.round} of attempt {mark.attempt}, but this "
                    f"process is at round {round}: another process runs, or ran, with a newer state. Nothing "
                    "is sent."
                )

    @contextmanager
    def _locked(self, run: str) -> Iterator[tuple[int, Mark | None]]:
        try:
            place, flags, new = self._path(run), os.O_RDWR | os.O_CLOEXEC, False
            try:
                descriptor = os.open(place, flags)
            except FileNotFoundError:
                new = True
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                descriptor = os.open(place, flags | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                data = os.pread(descriptor, 2 * SLOT, 0)
                yield descriptor, self._parse(run, data) if data else None
                if new:
                    self._sync_folder()
            finally:
                os.close(descriptor)
        except OSError as error:
            why = error.strerror
            raise SiteError(
                f"{self.folder}: the file that states the newest round that was sent (the high-water mark) "
                f"cannot be used ({why})."
            ) from error

    def _parse(self, run: str, data: bytes) -> Mark:
        found = [_read_slot(data[start : start + SLOT]) for start in (0, SLOT)]
        marks = [mark for mark in found if mark is not None]
        if not marks:
            raise WrongFiles(
                f"{self._path(run)} is damaged: the newest round that this run has sent (its high-water "
                "mark) cannot be read."
            )
        return max(marks, key=lambda mark: mark.writes)

    def _write(self, descriptor: int, mark: Mark) -> None:
        writes = mark.writes + 1
        text = canonical(vars(mark) | {"writes": writes}).encode()
        slot = hashlib.sha256(text).hexdigest().encode() + text
        os.pwrite(descriptor, slot.ljust(SLOT, b"\n"), SLOT * (writes % 2))
        os.fsync(descriptor)

    def _sync_folder(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _path(self, run: str) -> str:
        return os.path.join(self.folder, f"{_digest(run)[:32]}.mark")


def _read_slot(slot: bytes) -> Mark | None:
    text = slot[64:].rstrip(b"\n")
    if hashlib.sha256(text).hexdigest().encode() != slot[:64]:
        return None
    return Mark(**json.loads(text))


def _digest(place: str) -> str:
    return hashlib.sha256(place.encode()).hexdigest()


def file_identity(path: Path) -> str:
    """A text that is different once the state file was copied, moved or replaced.

    It contains the path, inode and machine of the file, and the inode and change time of its lock file, which
    is never written to. A copy has another inode. A copy in the place of the original has another lock file,
    or a later change time. If an older file was written over the original, the text stays the same, but the
    older round in the file reveals it. The device number is left out: on some machines a restart changes it.
    """
    lock = path.with_name(path.name + ".lock").stat()
    numbers = f"{path.stat().st_ino} {lock.st_ino} {lock.st_ctime_ns}"
    return f"{path.resolve()} {numbers} {_machine()}"


@lru_cache(maxsize=1)
def _machine() -> str:
    for place in _MACHINE:
        with suppress(OSError):
            return Path(place).read_text(encoding="ascii", errors="replace").strip()
    return "unknown"
