"""Keys in memory that a power cut ends: a tmpfs that is never swapped, or the kernel's keyring.

They are never in the state file, its journal or a backup. After kill -9 they are still there; after a reboot
they are not, and neither are they beside a state that was moved. Each entry carries the attempt, the next
round and the identity of the state file, and is refused where one of them differs: that state was restored or
copied. A hibernated machine, or an image of one with its memory, holds the keys: such an image is a key.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from ...core.canonical import canonical
from ...core.errors import StateLost, WrongFiles
from ..files.site import KEYRING
from .file_identity import file_identity
from .kernel_keyring import KernelKeyring
from .locked_memory import MemoryFolder, find_fault

_MAGIC = b"taciturn keys 1\n"


class StaleKey(StateLost):
    """A key of another attempt, another round or another state file."""


@dataclass(frozen=True)
class KeyTag:
    """Which attempt and round a key is for, and which state file goes with it."""

    attempt: int
    round: int
    state: str


class SecretPlace(Protocol):
    """Where secrets lie, by name."""

    def write(self, name: str, secret: bytes) -> None: ...
    def read(self, name: str) -> bytes | None: ...
    def delete(self, name: str) -> None: ...
    def names(self) -> list[str]: ...


@dataclass(frozen=True)
class VolatileKeys:
    """The keys of one site; `state` is the state file that they belong to."""

    place: SecretPlace
    state: Path

    def tag(self, attempt: int, round: int) -> KeyTag:
        """The tag of a key for this state file."""
        return KeyTag(attempt, round, file_identity(self.state))

    def put(self, name: str, tag: KeyTag, secret: bytes) -> None:
        """Keep a secret under a name, in the place of what was there."""
        head = canonical(asdict(tag)).encode()
        body = len(head).to_bytes(4, "big") + head + secret
        self.place.write(name, _MAGIC + hashlib.sha256(body).digest() + body)

    def get(self, name: str, tag: KeyTag) -> bytes | None:
        """The secret of that name and tag; None where there is none, `StaleKey` where its tag differs."""
        found = self.place.read(name)
        if found is None:
            return None
        body = found[len(_MAGIC) + 32 :]
        if not found.startswith(_MAGIC) or hashlib.sha256(body).digest() != found[len(_MAGIC) : -len(body)]:
            raise StaleKey(f"the key {name!r} in volatile memory is damaged; nothing is released with it.")
        size = int.from_bytes(body[:4], "big")
        kept = KeyTag(**json.loads(body[4 : 4 + size]))
        if kept != tag:
            what = " and ".join(_differences(kept, tag))
            raise StaleKey(
                f"the keys in volatile memory belong to {what}: this `state` was restored from a backup, or "
                "copied. Nothing is released with them."
            )
        return body[4 + size :]

    def delete(self, name: str) -> None:
        """Overwrite and forget a secret; nothing happens where there is none."""
        self.place.delete(name)

    def wipe(self) -> None:
        """Forget all secrets of this site."""
        for name in self.place.names():
            self.place.delete(name)


def open_volatile_keys(folder: Path | None, state: Path) -> VolatileKeys:
    """The keys of the site with that state file: in `folder`, in the kernel's keyring, or where it is safe.

    A `folder` that is no tmpfs, or that may be swapped to a disk, is refused with what to do about it.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # no dump
    own = hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:32]
    if folder == KEYRING:
        return VolatileKeys(KernelKeyring(own), state)
    if folder is not None:
        if fault := find_fault(folder):
            raise WrongFiles(f"`keys.volatile`: {folder} {fault}")
        return VolatileKeys(MemoryFolder(folder / own), state)
    faults = []
    for place in _usual_places():
        if not (fault := find_fault(place)):
            return VolatileKeys(MemoryFolder(place / f"taciturn-{os.getuid()}" / own), state)
        faults.append(f"{place} {fault}")
    if KernelKeyring.works():
        return VolatileKeys(KernelKeyring(own), state)
    why = " ".join(faults) or "there is no tmpfs that this user may write in."
    raise WrongFiles(f"`keys.volatile`: this machine has no volatile memory for keys: {why}")


def _usual_places() -> Iterator[Path]:
    """The runtime folder of the service, that of the user, and shared memory."""
    for name in ("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"):
        for entry in filter(None, os.environ.get(name, "").split(":")):
            if os.access(entry, os.W_OK | os.X_OK):
                yield Path(entry)
    if os.access("/dev/shm", os.W_OK | os.X_OK):
        yield Path("/dev/shm")


def _differences(kept: KeyTag, tag: KeyTag) -> Iterator[str]:
    if kept.attempt != tag.attempt:
        yield f"attempt {kept.attempt}, not {tag.attempt}"
    if kept.round != tag.round:
        yield f"round {kept.round}, not {tag.round}"
    if kept.state != tag.state:
        yield "another state file"
