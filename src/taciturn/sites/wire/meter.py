"""The meter: how many bytes came in over each link, as the kernel counts them (Linux).

Zenoh drops a message that is larger than any frame while it comes in, without a word and without holding it
in memory. The bytes show all the same who sent it.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

from .refusals import Refusals

_RECEIVED = struct.Struct("=Q")
_RECEIVED_AT = 128  # of tcpi_bytes_received in struct tcp_info, since Linux 4.1
EVERY = 0.25  # seconds between two looks
SPARE, KEEPING = 2**26, 1024  # bytes on a link besides its frames: once, and each second to keep it alive


class Meter:
    """Tells `refusals` of a link that brought far more bytes than the messages that arrived over it.

    `ends` gives the name at each far end ("tls/host:port") of the open links.
    """

    def __init__(self, refusals: Refusals, ends: Callable[[], dict[str, str]]) -> None:
        self._refusals, self._ends = refusals, ends
        self._messages: Counter[str] = Counter()
        self._begun = time.monotonic()
        self._stopped = threading.Event()
        if sys.platform == "linux":
            threading.Thread(target=self._run, daemon=True).start()

    def count(self, name: str, size: int) -> None:
        """A message of `size` bytes arrived from `name`."""
        self._messages[name] += size

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()

    def look(self) -> None:
        """Is there a link with more bytes than its messages explain?"""
        came = bytes_received()
        spare = SPARE + KEEPING * (time.monotonic() - self._begun)
        for end, name in self._ends().items():
            if came.get(end, 0) > spare + 4 * self._messages[name]:
                self._refusals.refuse(
                    name, "flood", f"{came[end]} bytes so far, far more than its frames have"
                )

    def _run(self) -> None:
        while not self._stopped.wait(EVERY):
            self.look()


def bytes_received() -> dict[str, int]:
    """ "tls/host:port" of the far end -> bytes received, for every TCP connection of this process."""
    counts: dict[str, int] = {}
    for entry in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.stat(int(entry)).st_mode):
                with socket.socket(fileno=os.dup(int(entry))) as copy:
                    host, port = copy.getpeername()[:2]
                    info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                counts[f"tls/{f'[{host}]' if ':' in host else host}:{port}"] = _received(info)
        except (OSError, ValueError):
            continue  # closed meanwhile, or no TCP connection
    return counts


def _received(info: bytes) -> int:
    if len(info) < _RECEIVED_AT + _RECEIVED.size:
        return 0
    return int(_RECEIVED.unpack_from(info, _RECEIVED_AT)[0])
