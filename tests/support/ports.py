"""Ports for tests, reserved on this machine from the choice to the last restart of a site.

A free port may be chosen by two test processes at once, or between a kill and the next
start. So each process holds a block of ports for as long as it lives, and goes through it in turn.
"""

from __future__ import annotations

import fcntl
import itertools
import socket
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

FIRST, SIZE, BLOCKS = 4_000, 100, 20  # below what Ray and the system give out, and the product's own choice
_held: list[Any] = []


def take_ports(count: int) -> list[int]:
    """Ports that nobody listens on, none of them given out a moment ago."""
    found: list[int] = []
    for port in itertools.islice(_turns(), 2 * SIZE):
        with socket.socket() as attempt:
            if port not in found and attempt.connect_ex(("127.0.0.1", port)) != 0:
                found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError(f"no {count} free ports in a block of {SIZE}")


@cache
def _turns() -> Iterator[int]:
    """The ports of this process's block, round and round."""
    for block in range(BLOCKS):
        file = (Path(tempfile.gettempdir()) / f"taciturn-test-ports-{block}.lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            continue
        _held.append(file)  # until this process ends
        return itertools.cycle(range(FIRST + block * SIZE, FIRST + (block + 1) * SIZE))
    raise RuntimeError("no block of ports is left")
