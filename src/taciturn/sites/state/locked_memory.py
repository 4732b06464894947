"""Secrets in a folder in memory, after a check that it is on a tmpfs that is never swapped to a disk."""

from __future__ import annotations

import ctypes
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from io import FileIO
from pathlib import Path

from ...core.errors import SiteError, WrongFiles

TMPFS, RAMFS = 0x01021994, 0x858458F6  # f_type of statfs(2)
_MOUNT = "mount -t tmpfs -o noswap,size=16m,mode=0700,uid=USER tmpfs FOLDER (Linux 6.4 and later)"


def find_fault(folder: Path) -> str:
    """The reason why a folder is unsafe for keys, and the fix; empty if it is safe."""
    try:
        kind = file_system(folder)
    except OSError as error:
        return f"cannot be read ({error.strerror}); create it, or name another folder."
    if kind not in (TMPFS, RAMFS):
        return f"must be on a tmpfs, which a power cut erases. Mount one: {_MOUNT}"
    if kind == TMPFS and swaps() and not has_option(folder, "noswap"):
        return (
            "is a tmpfs that may be swapped to a disk. Mount one with `noswap`: "
            f'{_MOUNT}; or turn swap off: swapoff -a; or set volatile = "keyring" in `keys`.'
        )
    return ""


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def file_system(folder: Path) -> int:
    """The magic number of the file system that a folder is on."""
    buffer = ctypes.create_string_buffer(512)
    try:
        call = _library().statfs
    except AttributeError as error:
        raise OSError(0, "this system has no statfs") from error
    if call(os.fsencode(folder), buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(ctypes.c_long.from_buffer(buffer).value) & 0xFFFFFFFF


def swaps() -> bool:
    """Whether the machine has swap; True if this cannot be found out."""
    try:
        with open("/proc/swaps", "rb", buffering=0) as file:
            return len(file.read().splitlines()) > 1
    except OSError:
        return True


def has_option(folder: Path, option: str) -> bool:
    """Whether the file system of a folder was mounted with an option."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return False
    mine = [line.split() for line in lines if line.split()[2] == number]
    return bool(mine) and all(option in fields[-1].split(",") for fields in mine)


@dataclass(frozen=True)
class MemoryFolder:
    """Secrets as files of a folder that only this user can read; each file is written whole or not at all."""

    folder: Path

    def write(self, name: str, secret: bytes) -> None:
        """Store a secret; `WrongFiles` if swap was turned on since the site started."""
        self._make()
        if fault := find_fault(self.folder):
            raise WrongFiles(f"{self.folder} {fault}")
        place = os.path.join(self.folder, name)
        part = os.path.join(self.folder, f".{name}.{secrets.token_hex(4)}")
        try:
            with open(part, "xb", buffering=0, opener=_for_owner) as file:
                file.write(secret)
            before = _opened(place)
            os.rename(part, place)  # a process killed here leaves the old or the new file
            if before is not None:
                with before:
                    before.write(bytes(os.fstat(before.fileno()).st_size))
        except OSError as error:
            with suppress(OSError):
                os.unlink(part)
            raise SiteError(f"{self.folder}: keys cannot be kept there ({error.strerror}).") from error

    def read(self, name: str) -> bytes | None:
        """A secret, or None."""
        if not self.folder.is_dir():
            return None
        self._check()
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SiteError(f"{self.folder}: keys cannot be read there ({error.strerror}).") from error

    def delete(self, name: str) -> None:
        """Overwrite a secret, and remove it."""
        place = os.path.join(self.folder, name)
        if (before := _opened(place)) is not None:
            with before:
                before.write(bytes(os.fstat(before.fileno()).st_size))
            os.unlink(place)

    def names(self) -> list[str]:
        """The names of all secrets, including unfinished files of a killed process."""
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else []

    def _make(self) -> None:
        try:
            if not os.path.isdir(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise WrongFiles(f"{self.folder}: cannot be created ({error.strerror}).") from error
        self._check()

    def _check(self) -> None:
        """Check that the folder belongs to this user alone: any user can create folders in shared memory."""
        found = os.lstat(self.folder)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077 or not os.path.isdir(self.folder):
            raise WrongFiles(f"{self.folder}: must belong to this user alone; remove it first.")


def _opened(place: str) -> FileIO | None:
    """Open a file, to overwrite it even after another file has taken its name; None if it is missing."""
    try:
        return open(place, "r+b", buffering=0)
    except FileNotFoundError:
        return None


def _for_owner(place: str, flags: int) -> int:
    return os.open(place, flags | os.O_NOFOLLOW, 0o600)
