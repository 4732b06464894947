"""Keys in memory that a power cut erases: a tmpfs that is never swapped, or the kernel's keyring.

In a masked job these are private keys, salts and noise. They are never in the state file, its journal or a
backup. They survive kill -9, but not a reboot. Each entry is bound to the identity of the state file, so a
site whose state file was moved, restored or copied finds no entries. A hibernated machine, or an image of a
machine with its memory, contains the keys: protect such an image like a key.
"""

from __future__ import annotations

import hashlib
import os
import resource
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from ...core.errors import WrongFiles
from ..files.site import KEYRING
from .high_water import file_identity
from .kernel_keyring import KernelKeyring
from .locked_memory import MemoryFolder, find_fault

NAMES = ("secret", "keys", "y")  # names of entries; each states its attempt and round
_MAGIC = b"taciturn keys 2\n"


class SecretPlace(Protocol):
    """A store of secrets by name."""

    def write(self, name: str, secret: bytes) -> None: ...
    def read(self, name: str) -> bytes | None: ...
    def delete(self, name: str) -> None: ...
    def names(self) -> list[str]: ...


@dataclass(frozen=True, eq=False)
class VolatileMemory:
    """The volatile memory of one site's protocol; `state` is the state file that the memory belongs to."""

    place: SecretPlace
    state: Path

    @cached_property
    def _identity(self) -> bytes:
        """The identity of the state file; it does not change while this process has the file open."""
        return file_identity(self.state).encode()

    def _seal(self, secret: bytes) -> bytes:
        bound = hashlib.sha256(self._identity + b"\0" + secret).digest()
        return _MAGIC + bound + secret

    def read(self) -> dict[str, bytes]:
        """All intact entries that belong to this state file; none for a restored file."""
        found = {name: self.place.read(name) for name in NAMES}
        secrets = {name: data[len(_MAGIC) + 32 :] for name, data in found.items() if data is not None}
        return {name: secret for name, secret in secrets.items() if found[name] == self._seal(secret)}

    def change(self, entries: Mapping[str, bytes | None]) -> None:
        """Replace entries; None overwrites and deletes one."""
        for name, secret in entries.items():
            if secret is None:
                self.place.delete(name)
            else:
                self.place.write(name, self._seal(secret))

    def wipe(self) -> None:
        """Delete all secrets."""
        for name in self.place.names():
            self.place.delete(name)


def open_volatile(folder: Path | None, state: Path) -> VolatileMemory:
    """The keys of the site with that state file: in `folder`, in the kernel's keyring, or in a usual place.

    A `folder` that is not on a tmpfs, or may be swapped to a disk, is refused; the error says what to do.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # no dump
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
