"""Files on disk: written whole or not at all, and locked by one process at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from .errors import LedgerError, ParameterError

T = TypeVar("T")
PART = ".part"  # how the name of an unfinished file ends; a process that is killed leaves it behind


def retry_for_descriptors(act: Callable[[], T], patience: float = 60.0) -> T:
    """Do something that opens files, again while this process has no descriptor left.

    A crowd at the port of a site may hold all of them for a while. After `patience` seconds the error stands.
    """
    end = time.monotonic() + patience
    while True:
        try:
            return act()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or time.monotonic() >= end:
                raise
        time.sleep(0.1)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which becomes `path` at the end of the block; folders are made as needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str) -> Path:
    """Write a file whole, text as UTF-8; a pipe or a device is written as it is."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(data)
    else:
        with whole_file(path) as file:
            file.write(data)
    return path


def check_folder(option: str, path: Path | None) -> None:
    """A result goes into a folder that is there: a typing mistake makes no new ones."""
    if path is not None and not path.parent.is_dir():
        raise ParameterError(
            f"`{option}` must be in an existing folder; got {path}. Create {path.parent} first."
        )


class LockFile:
    """`<path>.lock`, locked by the operating system until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        beside = path.with_name(path.name + ".lock")
        try:
            self._fd = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LedgerError(f"the ledger's folder cannot be written: {error.strerror}.") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise LedgerError(
                f"the ledger {path.name} is in use by another process; stop that process first."
            ) from error

    def release(self) -> None:
        """Let the next process in. Calling it again does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
