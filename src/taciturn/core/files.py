"""Write files completely or not at all, and lock a file so that only one process uses it at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from .errors import LedgerError, ParameterError

T = TypeVar("T")
PART = ".part"  # the suffix of an unfinished file, which a killed process leaves behind
DAMAGED_NPZ = (zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, KeyError, EOFError)
"""The errors, besides `OSError`, with which `numpy.load` may fail on a damaged .npz file."""

_spare: list[int] = []
"""Spare open descriptors. `retry_for_descriptors` closes them when the process has no free descriptor."""


def reserve_descriptors(count: int = 8) -> None:
    """Open spare descriptors, for files that must be written even if connections use all the others."""
    while len(_spare) < count:
        _spare.append(os.open(os.devnull, os.O_RDONLY))


def retry_for_descriptors(act: Callable[[], T], patience: float = 60.0) -> T:
    """Call `act`, which opens files; repeat the call while the process has no free file descriptor.

    Many connections to a site's port may use up all descriptors for a while. Before the second call, the
    spare descriptors are closed. After `patience` seconds the `OSError` of `act` is raised.
    """
    end = time.monotonic() + patience
    while True:
        try:
            return act()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or time.monotonic() >= end:
                raise
        while _spare:
            os.close(_spare.pop())
        time.sleep(0.1)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A temporary file, which is renamed to `path` if the block succeeds; missing folders are created."""
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
    """Write a file completely or not at all, with text as UTF-8. Write to a pipe or device directly."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(data)
    else:
        with whole_file(path) as file:
            file.write(data)
    return path


def check_folder(option: str, path: Path | None) -> None:
    """Raise an error if `path` is a folder, or if the folder of `path` does not exist."""
    if path is None:
        return
    if path.is_dir():
        raise ParameterError(f"`{option}` must be a file; got {path}, which is a folder.")
    if not path.parent.is_dir():
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
            raise LedgerError(
                f"the ledger's lock file cannot be opened: {beside}: {error.strerror}."
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise LedgerError(
                f"the ledger {path.name} is in use by another process; stop that process first."
            ) from error

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
