"""The ancestors of this process: its parent, the parent of that process, and so on.

An entry is a text that identifies a process. It contains the start time of the process, because the system
reuses process numbers. The ancestors are recorded when the package is loaded. So a worker process knows which
process started it, even if that process has been killed since.
"""

from __future__ import annotations

import calendar
import os
import sys
import time
from contextlib import suppress
from typing import Any, NamedTuple

PROC = "/proc"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class _Process(NamedTuple):
    parent: int
    started: str


def process_entry(pid: int) -> str:
    """The entry of a process: its number (PID), its start time, and the number of its PID namespace."""
    about = _look_up(pid)
    started = about.started if about else "unknown"
    try:
        container = os.stat(f"{PROC}/self/ns/pid").st_ino
    except OSError:
        container = 0
    return f"{pid}-{started}-{container}"


def is_gone(entry: str) -> bool:
    """Whether the process of an entry has ended; another process may have the same number now."""
    return process_entry(int(entry.partition("-")[0])) != entry


def clock() -> int:
    """The current time, on the clock that the start times in entries refer to."""
    if os.path.exists(f"{PROC}/self/stat"):
        since_boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return time.clock_gettime_ns(since_boot) * os.sysconf("SC_CLK_TCK") // 10**9
    return int(time.time())


def is_started(entry: str, moment: int) -> bool:
    """Whether the process of an entry had started at `moment` (see `clock`); True if its start is unknown."""
    started = entry.split("-")[1]
    return not started.isdigit() or int(started) <= moment


def lineage() -> list[tuple[str, str]] | None:
    """Pairs (ancestor, child of this ancestor): first as of the start of this process, then as of now.

    In both parts the nearest ancestor comes first. The result is None if the ancestors are unknown.
    """
    now = ancestors()
    if now is None:
        return None
    pairs: list[tuple[str, str]] = []
    for chain in map(_without_fork_server, (ancestors_at_start, now)):
        pairs += zip(chain, [process_entry(os.getpid()), *chain], strict=False)
    return list(dict.fromkeys(pairs))


def _without_fork_server(chain: list[str]) -> list[str]:
    """Replace multiprocessing's fork server in the chain by the process that asked the server to fork."""
    asked = _asked_to_start()
    if asked is None or asked is _inherited[0] or not chain or chain[0].startswith(f"{asked.pid}-"):
        return chain
    return list(dict.fromkeys((process_entry(asked.pid), *chain[1:])))


def _asked_to_start() -> Any:
    """The process that started this one through multiprocessing; None if multiprocessing did not start it."""
    module = sys.modules.get("multiprocessing.process")
    return None if module is None else module.parent_process()


def has_children() -> bool:
    """Whether this process has running children other than Python's resource tracker; False without /proc."""
    for name in os.listdir(PROC) if os.path.exists(f"{PROC}/self/stat") else ():
        about = _look_up(int(name)) if name.isdigit() else None
        if about is not None and about.parent == os.getpid():
            with suppress(OSError), open(f"{PROC}/{name}/cmdline", "rb") as file:
                command = file.read()
                if command and b"resource_tracker" not in command:
                    return True
    return False


def ancestors() -> list[str] | None:
    """The entries of the ancestors, nearest ancestor first; None if this process cannot be looked up."""
    about, found = _look_up(os.getpid()), []
    if about is None:
        return None
    while about is not None and about.parent > 0:
        found.append(process_entry(about.parent))
        about = _look_up(about.parent)
    return found


def _look_up(pid: int) -> _Process | None:
    """The parent and the start time of a process; None if the process does not exist or is hidden."""
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
        parent, _, month, day, hour, year = told.stdout.split()
        date = (int(year), _MONTHS.index(month) + 1, int(day), *map(int, hour.split(":")))
        return _Process(int(parent), str(calendar.timegm(date)))
    return None


ancestors_at_start: list[str] = []
"""The ancestors of this process when it began, nearest first; empty on systems without /proc."""
_inherited: list[Any] = [None]
"""The result of `_asked_to_start` just after this process was forked; None if it was not forked."""


def remember_ancestors() -> None:
    """Fill `ancestors_at_start`. This is called when the package is loaded, and in each forked child."""
    if os.path.exists(f"{PROC}/self/stat"):
        known = [process_entry(os.getppid()), *ancestors_at_start] if ancestors_at_start else ancestors()
        ancestors_at_start[:] = known or []


def _after_fork() -> None:
    _inherited[0] = _asked_to_start()
    remember_ancestors()


os.register_at_fork(after_in_child=_after_fork)
