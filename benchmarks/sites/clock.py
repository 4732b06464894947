"""Measure the parts of a round by timers around functions of a site.

Each part has wall-clock and CPU seconds, from the first release to the last. The CPU time
of threads that do not run Python is the time of Zenoh: TLS, sockets, routing.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import taciturn.methods.admm.node as penalty_node
import taciturn.privacy.ledger.chain as chain
import taciturn.sites.protocol.rounds as protocol_rounds
from taciturn.methods.sums.attempt import SumsAttempt
from taciturn.sites.protocol.frames import HEADER, Kind
from taciturn.sites.rounds.driver import SiteDriver
from taciturn.sites.transport.zenoh import ZenohLinks
from taciturn.sites.wire.trust import Identity, Trust

SYNCED = ("COMMIT", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_checkpoint(RESTART)")


class Clock:
    """The wall-clock and CPU seconds of each part, while the clock runs."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = defaultdict(float)
        self.cpu: dict[str, float] = defaultdict(float)
        self.marks: dict[str, float] = {}
        self.released: list[float] = []
        self._runs = False

    def around(self, owner: Any, name: str, part: str) -> None:
        """Time every call of `owner.name`."""
        setattr(owner, name, self.timed(getattr(owner, name), part))

    def timed(self, real: Callable[..., Any], part: str) -> Callable[..., Any]:
        """The same function, timed."""

        def call(*args: Any, **options: Any) -> Any:
            wall, cpu = time.perf_counter(), time.thread_time()
            try:
                return real(*args, **options)
            finally:
                self.add(part, time.perf_counter() - wall, time.thread_time() - cpu)

        return call

    def add(self, part: str, wall: float, cpu: float) -> None:
        """Add times to a part."""
        if self._runs:
            self.wall[part] += wall
            self.cpu[part] += cpu

    def mark(self, name: str) -> None:
        """Record the current time under a name."""
        self.marks[name] = time.monotonic()

    def release(self, t: int, rounds: int) -> None:
        """Record that round t left the site. The clock runs from the first release to the last."""
        self.released.append(time.monotonic())
        if t in (1, rounds):
            sign = 1 if t == rounds else -1
            self.wall["whole"] += sign * time.perf_counter()
            self.cpu["whole"] += sign * time.process_time()
            self.cpu["own thread"] += sign * time.thread_time()
            for name, seconds in threads().items():
                self.cpu[f"thread {name}"] += sign * seconds
            self._runs = t == 1


def threads() -> dict[str, float]:
    """The CPU seconds by thread name; threads whose names differ only in a number are added up."""
    ours = {str(thread.native_id): thread.name for thread in threading.enumerate()}
    ticks = os.sysconf("SC_CLK_TCK")
    found: dict[str, float] = defaultdict(float)
    for task in Path("/proc/self/task").iterdir():
        head, _, rest = (task / "stat").read_text().rpartition(")")
        words = rest.split()
        name = ours.get(task.name, head.partition("(")[2])
        found[re.sub(r"-?\d+", "", name)] += (int(words[11]) + int(words[12])) / ticks
    return found


def start(clock: Clock, rounds: int) -> None:
    """Put timers around the parts of a site in this process."""
    clock.around(penalty_node.Node, "primal", "solve")
    clock.around(SumsAttempt, "message", "solve")
    clock.around(protocol_rounds, "mask", "solve")
    clock.around(Identity, "seal", "sign")
    clock.around(SiteDriver, "_store", "commit")
    clock.around(SiteDriver, "_next", "wait")
    clock.around(Trust, "check", "check")
    clock.around(ZenohLinks, "send", "send")
    real = SiteDriver._carry_out

    def carry_out(self: Any, effect: Any) -> None:
        real(self, effect)
        data = getattr(effect, "data", b"")
        if len(data) > HEADER.size:
            _, _, kind, _, t, sender, _, _ = HEADER.unpack_from(data)
            if (kind, sender) == (Kind.MESSAGE, self.protocol.setup.own) and t > len(clock.released):
                clock.release(t, rounds)

    SiteDriver._carry_out = carry_out  # type: ignore[method-assign]
    connect = sqlite3.connect

    class Timed(sqlite3.Connection):
        def execute(self, sql: str, *args: Any) -> Any:
            act = super().execute
            if sql in SYNCED and threading.current_thread() is threading.main_thread():
                return clock.timed(act, "sync")(sql, *args)
            return act(sql, *args)

    def connected(*args: Any, **options: Any) -> Any:
        return connect(*args, factory=Timed, **options)

    setattr(chain, "sqlite3", _Patched(sqlite3, connect=connected))  # noqa: B010


class _Patched:
    """A module with some names replaced."""

    def __init__(self, module: Any, **names: Any) -> None:
        self.__dict__.update(names)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
