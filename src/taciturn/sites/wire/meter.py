"""The meter: it asks the Linux kernel for the bytes that each link received, and for the open connections.

A link is a connection to another site. Zenoh, the library that carries the messages, silently drops a message
that is far larger than the largest allowed one. The byte counts still reveal the sender of such a message.

If a client connects and then disconnects without showing a certificate, Zenoh accepts no other client for a
tenth of a second. Without free file descriptors, Zenoh neither accepts nor closes a connection. So a site
raises its limit of descriptors as far as it may, counts the connections at its port, and reopens the port
after many clients have left.
"""

from __future__ import annotations

import logging
import os
import resource
import socket
import stat
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from .refusals import Refusals

log = logging.getLogger("taciturn.site")

_RECEIVED = struct.Struct("=Q")
_RECEIVED_AT = 128  # offset of tcpi_bytes_received in struct tcp_info, since Linux 4.1
# The format and the offset of tcpi_unacked: for a socket in the state LISTEN, the length of its queue.
_QUEUED, _QUEUED_AT, _LISTENING = struct.Struct("=I"), 24, b"\n"
EVERY = 0.25  # seconds between two checks of the links
DOOR = 4  # connections are counted at every fourth check, because the kernel's table is slow to read
# The port is reopened after more than CROWD clients have left, if it has at most FEW unexpected connections.
CROWD, FEW = 20, 5
MOST_DESCRIPTORS = 2**20
_ESTABLISHED, _CLOSED = "01", "08"  # states in /proc/net/tcp: connected; closed by the far end
# A link may receive 4 times the bytes of its messages, plus SPARE bytes, plus KEEPING bytes per second.
SPARE, KEEPING = 2**26, 1024


class Meter:
    """Reports to `refusals` every link that received far more bytes than its messages contain.

    ends : a function that returns a dictionary of the open links. A key is the address of the far end
        ("tls/host:port"), and its value is the name in the certificate of the far end.
    door : the port that this site listens on; None if its connections are not counted.
    crowd : a function that is called when many clients of this port have left.
    """

    def __init__(
        self,
        refusals: Refusals,
        ends: Callable[[], dict[str, str]],
        door: Door | None = None,
        crowd: Callable[[], None] = lambda: None,
    ) -> None:
        self._refusals, self._ends, self._door, self._crowd = refusals, ends, door, crowd
        self._messages: Counter[str] = Counter()
        self._begun = time.monotonic()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        if sys.platform == "linux":
            self._thread.start()

    def count(self, name: str, size: int) -> None:
        """Count a message of `size` bytes from `name`."""
        self._messages[name] += size

    def stop(self) -> None:
        """Stop the meter, so that the sockets that it inspects can be closed."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """Report links that received more bytes than their messages explain."""
        came = bytes_received()
        spare = SPARE + KEEPING * (time.monotonic() - self._begun)
        for end, name in self._ends().items():
            if came.get(end, 0) > spare + 4 * self._messages[name]:
                self._refusals.refuse(
                    name, "flood", f"it has sent {came[end]} bytes, far more than its messages contain"
                )

    def _run(self) -> None:
        said, looks = False, 0
        while not self._stopped.wait(EVERY):
            looks += 1
            try:
                self.look()
            except OSError as error:  # no file descriptor is free
                if not said:
                    log.warning("cannot check the bytes on the links: %s", error.strerror)
                said = True
            if self._door is not None and looks % DOOR == 0 and self._door.crowd_left():
                self._crowd()


class Door:
    """The port that a site listens on: its open connections, and those that the client has closed.

    friends : the number of connections that are expected.

    The kernel's tables are opened when the object is created, and stay open, because later all file
    descriptors may be in use.
    """

    def __init__(self, port: int, friends: int) -> None:
        self._port, self._friends, self._said = f":{port:04X}", friends, False
        tables = (Path("/proc/self/net") / name for name in ("tcp", "tcp6"))
        self._tables = [table.open() for table in tables if table.exists()]

    def count(self) -> tuple[int, int]:
        """(number of open connections, number of connections that the client has closed)"""
        there = gone = 0
        for table in self._tables:
            table.seek(0)
            for line in table:
                words = line.split(None, 4)
                if words[1].endswith(self._port):
                    there += words[3] == _ESTABLISHED
                    gone += words[3] == _CLOSED
        return there, gone

    def crowd_left(self) -> bool:
        """True if few clients are connected, but this process has many open sockets of earlier clients."""
        if most_callers() <= CROWD:  # a quick upper bound; an exact count needs the kernel's slow table
            return False
        there, gone = self.count()
        if there + gone > self._friends + CROWD and not self._said:
            self._said = True
            log.warning(
                "%d connections to this site's port, most of them from unauthenticated clients; a firewall "
                "that admits only the neighbours would block them",
                there + gone,
            )
        return gone > CROWD and there <= self._friends + FEW

    def close(self) -> None:
        for table in self._tables:
            table.close()


def take_descriptors() -> None:
    """Raise the limit of open descriptors as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def bytes_received() -> dict[str, int]:
    """How many bytes this process received over each TCP connection, by address of the far end."""
    counts: dict[str, int] = {}
    for found in _sockets():
        with suppress(OSError, ValueError):  # the socket was closed meanwhile, or is not a TCP connection
            info = _tcp_info(found)  # raises if this is not a TCP socket; only TCP has a host and a port
            host, port = found.getpeername()[:2]
            end = f"tls/{f'[{host}]' if ':' in host else host}:{port}"
            counts[end] = _number_in(info, _RECEIVED, _RECEIVED_AT)
    return counts


def most_callers() -> int:
    """An upper bound on the number of connections at this process's ports.

    It is the number of sockets, plus the connections that wait in the queues of listening sockets.
    """
    count = 0
    try:
        for found in _sockets():
            count += 1
            with suppress(OSError):  # `_tcp_info` raises if this is not a TCP socket
                info = _tcp_info(found)
                count += _number_in(info, _QUEUED, _QUEUED_AT) if info[:1] == _LISTENING else 0
    except OSError:  # no file descriptor is free
        return sys.maxsize
    return count


def _sockets() -> Iterator[socket.socket]:
    """Every socket of this process. No descriptor is copied: the process may have no free descriptor."""
    for entry in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the descriptor was closed meanwhile
            if stat.S_ISSOCK(os.stat(int(entry)).st_mode):
                found = socket.socket(fileno=int(entry))
                try:
                    yield found
                finally:
                    found.detach()


def _tcp_info(found: socket.socket) -> bytes:
    return found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)


def _number_in(info: bytes, form: struct.Struct, place: int) -> int:
    """A number in struct tcp_info; 0 if this kernel does not give it."""
    return int(form.unpack_from(info, place)[0]) if len(info) >= place + form.size else 0
