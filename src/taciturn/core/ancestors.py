"""The ancestors of this process, under names that are never reused.

Read when the package is loaded: a worker that was forked before anything was computed must know, later on,
who started it, also if that process was killed meanwhile.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

PROC = "/proc"


class _Process(NamedTuple):
    parent: int
    started: str


def process_entry(pid: int) -> str:
    """A process: its number, when it was started, and the container whose numbers these are."""
    about = _look_up(pid)
    started = "".join(c for c in about.started if c.isalnum()) if about else "unknown"
    try:
        container = os.stat(f"{PROC}/self/ns/pid").st_ino
    except OSError:
        container = 0
    return f"{pid}-{started}-{container}"


def is_gone(entry: str) -> bool:
    """Whether the process of an entry has ended, so that its number may be another one's by now."""
    return process_entry(int(entry.partition("-")[0])) != entry


def ancestors() -> list[str] | None:
    """The entries of the ancestors, nearest first; None if they cannot be found out."""
    about, found = _look_up(os.getpid()), []
    if about is None:
        return None
    while about is not None and about.parent > 0:
        found.append(process_entry(about.parent))
        about = _look_up(about.parent)
    return found


def _look_up(pid: int) -> _Process | None:
    """The parent of a process and its start time; None if the process does not exist or is hidden."""
    try:
        with open(f"{PROC}/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return _Process(int(fields[1]), fields[19])
    except (OSError, ValueError, IndexError):
        if os.path.exists(f"{PROC}/self/stat"):
            return None
    import subprocess

    with suppress(OSError, ValueError, subprocess.SubprocessError):
        command = ["ps", "-o", "ppid=,lstart=", "-p", str(pid)]
        plain = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
        told = subprocess.run(command, capture_output=True, text=True, check=True, env=plain, timeout=10)
        parent, _, started = told.stdout.strip().partition(" ")
        return _Process(int(parent), started)
    return None


ancestors_at_start: list[str] = []
"""The ancestors that this process had when it began, nearest first; empty where there is no /proc."""


def remember_ancestors() -> None:
    """When the package is loaded, and in a forked child, which knows those of its parent already."""
    if os.path.exists(f"{PROC}/self/stat"):
        known = [process_entry(os.getppid()), *ancestors_at_start] if ancestors_at_start else ancestors()
        ancestors_at_start[:] = known or []


os.register_at_fork(after_in_child=remember_ancestors)
