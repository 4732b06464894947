"""Keys in memory that a power cut erases: a tmpfs that is never swapped, or the kernel's keyring.

A masked job, in which masks hide each message, keeps its private keys, salts and noise here, and never in the
state file or a backup. These entries survive kill -9, but not a reboot. Each is bound to the state file, so a
site whose state file was moved, copied or replaced finds no entries. The disk of a hibernated machine and a
snapshot of a virtual machine with its memory contain the keys: protect both like a key.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import resource
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from ...core.errors import SiteError, WrongFiles
from ..files.site import KEYRING
from .high_water import file_identity
from .kernel_keyring import KernelKeyring

# The names of the entries. Each entry begins with the number of its attempt, which is a sequence of rounds.
NAMES = ("secret", "keys", "y")
_MAGIC = b"taciturn keys 2\n"
_IN_MEMORY = (0x01021994, 0x858458F6)  # `f_type` of a tmpfs and of a ramfs in struct statfs
_LONG_FIRST = ("x86_64", "aarch64", "riscv64")  # machines on which `f_type` is the first long of the struct
_MOUNT = "mount -t tmpfs -o noswap,size=16m,mode=0700,uid=USER tmpfs FOLDER (Linux 6.4 and later)"


@dataclass(frozen=True, eq=False)
class VolatileMemory:
    """The volatile memory of one site's protocol; `state` is the state file that the memory belongs to."""

    place: MemoryFolder | KernelKeyring
    state: Path

    @cached_property
    def _identity(self) -> bytes:
        """The identity of the state file; it does not change while this process has the file open."""
        return file_identity(self.state).encode()

    def _seal(self, secret: bytes) -> bytes:
        bound = hashlib.sha256(self._identity + b"\0" + secret).digest()
        return _MAGIC + bound + secret

    def read(self) -> dict[str, bytes]:
        """All intact entries that belong to this state file; none for a moved or copied file."""
        found = {name: self.place.read(name) for name in NAMES}
        secrets = {name: data[len(_MAGIC) + 32 :] for name, data in found.items() if data is not None}
        return {name: secret for name, secret in secrets.items() if found[name] == self._seal(secret)}

    def change(self, entries: Mapping[str, bytes | None]) -> None:
        """Replace entries; the value None overwrites and deletes an entry."""
        for name, secret in entries.items():
            if secret is None:
                self.place.delete(name)
            else:
                self.place.write(name, self._seal(secret))

    def wipe(self) -> None:
        self.change(dict.fromkeys(NAMES))


def open_volatile(folder: Path | None, state: Path) -> VolatileMemory:
    """Open the volatile memory of the site with this state file: in `folder`, or else in a usual safe place.

    A `folder` that is not on a tmpfs, or may be swapped to a disk, is refused; the error says what to do.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # no core dump
    own = hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:32]
    if folder == KEYRING:
        return VolatileMemory(KernelKeyring(own), state)
    if folder is not None:
        if fault := find_fault(folder):
            raise WrongFiles(f"`keys.volatile`: {folder} {fault}")
        return VolatileMemory(MemoryFolder(folder / own), state)
    faults = []
    for place in _usual_places():
        if not (fault := find_fault(place)):
            return VolatileMemory(MemoryFolder(place / f"taciturn-{os.getuid()}" / own), state)
        faults.append(f"{place} {fault}")
    if KernelKeyring.works():
        return VolatileMemory(KernelKeyring(own), state)
    why = " ".join(faults) or "there is no tmpfs that this user may write to."
    raise WrongFiles(f"`keys.volatile`: this machine has no memory for keys that a power cut erases: {why}")


def _usual_places() -> Iterator[Path]:
    """The runtime folders of the service and of the user, and shared memory."""
    named = (os.environ.get(name, "").split(":") for name in ("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"))
    for place in (*(entry for entries in named for entry in entries), "/dev/shm"):
        if place and os.access(place, os.W_OK | os.X_OK):
            yield Path(place)


def find_fault(folder: Path) -> str:
    """The reason why a folder is unsafe for keys, and the fix; empty if it is safe."""
    try:
        kind, options = mounted(folder)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        return f"cannot be read ({error.strerror}); create it, or name another folder."
    if kind not in ("tmpfs", "ramfs"):
        return f"must be on a tmpfs, which a power cut erases. Mount one: {_MOUNT}"
    if kind == "tmpfs" and "noswap" not in options and swaps():
        return (
            "is a tmpfs that may be swapped to a disk. Mount one with `noswap`: "
            f'{_MOUNT}; or turn swap off: swapoff -a; or set volatile = "keyring" in `keys`.'
        )
    return ""


def mounted(folder: Path) -> tuple[str, frozenset[str]]:
    """The type of a folder's file system, and the options that all its mounts have in common."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    mounts = [fields[fields.index("-") + 1 :] for fields in lines if fields[2] == number]
    options = [frozenset(fields[-1].split(",")) for fields in mounts]
    return (mounts[0][0], frozenset.intersection(*options)) if mounts else ("", frozenset())


def never_written(folder: Path) -> bool:
    """Whether a folder is certainly in memory, on a machine without swap.

    This check is quick, because it does not read the table of mounts. If it is False, a caller must make the
    full check with `find_fault`.
    """
    if (statfs := _statfs()) is None:
        return False
    found = (ctypes.c_long * 32)()  # longer than struct statfs on every machine in `_LONG_FIRST`
    return statfs(os.fsencode(folder), found) == 0 and found[0] in _IN_MEMORY and not swaps()


@lru_cache(maxsize=1)
def _statfs() -> Callable[..., int] | None:
    """The function statfs of the C library; None where this module does not know the struct."""
    if platform.system() != "Linux" or platform.machine() not in _LONG_FIRST:
        return None
    return ctypes.CDLL(None).statfs


def swaps() -> bool:
    """Whether the machine has swap; True if this cannot be found out."""
    try:
        with open("/proc/swaps", "rb", buffering=0) as file:
            return len(file.read().splitlines()) > 1
    except (FileNotFoundError, PermissionError):
        return True


@dataclass(frozen=True)
class MemoryFolder:
    """Secrets as files of a folder that only this user can read; each file is written whole or not at all."""

    folder: Path

    def write(self, name: str, secret: bytes) -> None:
        """Store a secret. Raise `WrongFiles` if the folder is no longer safe, for example after `swapon`."""
        self._make()
        place, part = self._place(name), self._part(name)
        try:
            if not never_written(self.folder) and (fault := find_fault(self.folder)):
                raise WrongFiles(f"{self.folder} {fault}")
            _erase(part)  # a killed process may have left it behind
            _create(part, secret)
            before = _open(place)
            try:
                os.rename(part, place)  # a process killed here leaves the old or the new file
                if before is not None:
                    _overwrite(before)
            finally:
                if before is not None:
                    os.close(before)
        except OSError as error:
            with suppress(OSError):
                _erase(part)
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
        _erase(self._place(name))
        _erase(self._part(name))

    def _place(self, name: str) -> str:
        """The file of a secret."""
        return os.path.join(self.folder, name)

    def _part(self, name: str) -> str:
        """The unfinished file of a secret."""
        return os.path.join(self.folder, f".{name}.part")

    def _make(self) -> None:
        """Create the folder if it is missing, and check it."""
        with suppress(OSError):
            self._check()
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise WrongFiles(f"{self.folder} cannot be created ({error.strerror}).") from error
        self._check()

    def _check(self) -> None:
        """Check that the folder belongs to this user alone: any user can create folders in shared memory."""
        found = os.lstat(self.folder)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077 or not stat.S_ISDIR(found.st_mode):
            raise WrongFiles(f"{self.folder} must belong to this user alone; remove it first.")


def _create(place: str, secret: bytes) -> None:
    """Write a new file that only this user can read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(place, flags, 0o600)
    try:
        if os.write(descriptor, secret) < len(secret):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)


def _open(place: str) -> int | None:
    """The descriptor of a file, so that it can be overwritten after it has lost its name; None if missing."""
    try:
        return os.open(place, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


def _overwrite(descriptor: int) -> None:
    os.write(descriptor, bytes(os.fstat(descriptor).st_size))


def _erase(place: str) -> None:
    """Overwrite a file, and remove it."""
    descriptor = _open(place)
    if descriptor is None:
        return
    try:
        _overwrite(descriptor)
        os.unlink(place)
    finally:
        os.close(descriptor)
