"""Links that can be cut and healed: a cable between network namespaces, or a proxy on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Proxy:
    """Carries TCP to 127.0.0.1:port. `cut` lets nothing through, `hang_up` ends what is open."""

    def __init__(self, port: int) -> None:
        self._target, self._open = port, threading.Event()
        self._open.set()
        self._pairs: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._open.clear()

    def heal(self) -> None:
        self._open.set()

    def hang_up(self) -> None:
        for end in self._pairs:
            with suppress(OSError):  # closed already
                end.shutdown(socket.SHUT_RDWR)  # or a reader would keep it open
            end.close()
        self._pairs.clear()

    def close(self) -> None:
        self._server.close()
        self.hang_up()
        self.heal()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            self._open.wait()
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            self._pairs += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self._open.wait()
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            end.close()


class Cable:
    """Two network namespaces with a cable between them that can be pulled out."""

    HOSTS = ("10.203.0.1", "10.203.0.2")

    def __init__(self, names: tuple[str, str]) -> None:
        self.names = names

    def _set(self, way: str) -> None:
        _ip("-n", self.names[0], "link", "set", "cable", way)

    def cut(self) -> None:
        self._set("down")

    def heal(self) -> None:
        self._set("up")


def why_no_namespaces() -> str | None:
    """The reason why network namespaces cannot be made here."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need root and the ip command"
    name = f"taciturn-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if made.returncode != 0:
        return "network namespaces are not allowed here"
    _ip("netns", "del", name)
    return None


@contextmanager
def cable() -> Iterator[Cable]:
    """Two namespaces, 10.203.0.1 and 10.203.0.2, for as long as the block lasts."""
    names = (f"taciturn-a-{os.getpid()}", f"taciturn-b-{os.getpid()}")
    try:
        for name in names:
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip(
            "-n", names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", names[1]
        )
        for name, host in zip(names, Cable.HOSTS, strict=True):
            _ip("-n", name, "address", "add", f"{host}/24", "dev", "cable")
            _ip("-n", name, "link", "set", "cable", "up")
        yield Cable(names)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def wait_for(condition: object, seconds: float) -> bool:
    """Wait for `condition()` for that long at most; whether it holds."""
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def until(condition: object, seconds: float = 300.0) -> None:
    """Wait until `condition()` holds; the limit is for what never happens, however busy the machine is."""
    assert wait_for(condition, seconds), "it did not happen"
