"""One process at a time: an advisory lock that dies with its holder, kill -9 included."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .errors import LedgerError


class LockFile:
    """`<path>.lock`, locked by the operating system until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        beside = path.with_name(path.name + ".lock")
        try:
            self._fd = os.open(beside, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise LedgerError(f"the ledger's folder cannot be written: {error.strerror}.") from error
        try:
            _lock(self._fd)
        except OSError as error:
            os.close(self._fd)
            raise LedgerError(
                f"the ledger {path.name} is held by another process; stop that one first."
            ) from error

    def release(self) -> None:
        """Let the next process in. Calling it again does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
