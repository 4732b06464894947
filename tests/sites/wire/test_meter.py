"""The meter knows from the kernel how many bytes a link brought."""

import socket
import sys

import pytest

from taciturn.sites.wire import meter as module
from taciturn.sites.wire.meter import Meter, bytes_received
from taciturn.sites.wire.refusals import Refusals


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's counters are read on Linux only")
def test_bytes_are_counted_by_their_far_end():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as near, server.accept()[0] as far:
            host, port = near.getsockname()
            near.sendall(bytes(12345))
            got = 0
            while got < 12345:
                got += len(far.recv(65536))
            assert bytes_received()[f"tls/{host}:{port}"] == 12345


def test_a_flood_is_what_messages_do_not_explain(monkeypatch):
    came = {"tls/a:1": module.SPARE + 10**6, "tls/b:2": module.SPARE + 10**9}
    monkeypatch.setattr(module, "bytes_received", lambda: came)
    monkeypatch.setattr(module, "EVERY", 3600.0)  # it looks when it is told to
    refusals = Refusals()
    meter = Meter(refusals, lambda: {"tls/a:1": "a", "tls/b:2": "b"})
    meter.stop()
    meter.count("a", 10**6)
    meter.count("b", 10**6)
    meter.look()
    assert set(refusals.counts()) == {("b", "flood")}
