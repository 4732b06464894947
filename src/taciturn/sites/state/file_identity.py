"""Which file a state is: a text that no copy, no restored backup and no other machine has."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path

_MACHINE = ("/etc/machine-id", "/var/lib/dbus/machine-id")


def file_identity(path: Path) -> str:
    """Path, inode and machine of a state file, and when its lock file, which is never written to, was made.

    The number of the device is left out: it changes when some machines are started again. A copy has another
    inode; one that was put in the place of the original has another lock file, or an older one with a later
    change time.
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
