"""The meter reads from the kernel how many bytes a link received."""

import os
import socket
import sys

import pytest

from support.linkcut import until
from taciturn.sites.wire import meter as module
from taciturn.sites.wire.meter import CROWD, Door, Meter, bytes_received, most_callers
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


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's counters are read on Linux only")
def test_sockets_whose_far_end_has_no_host_and_port_are_left_out():
    """The C library opens netlink sockets, and a log or a bus may be a Unix socket."""
    name = f"\0taciturn-{os.getpid()}".encode()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW), socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        with socket.socket(socket.AF_UNIX) as near:
            near.connect(name)
            assert all(end.startswith("tls/") for end in bytes_received())


def test_traffic_beyond_the_messages_is_a_flood(monkeypatch):
    came = {"tls/a:1": module.SPARE + 10**6, "tls/b:2": module.SPARE + 10**9}
    monkeypatch.setattr(module, "bytes_received", lambda: came)
    monkeypatch.setattr(module, "EVERY", 3600.0)  # it looks only when asked
    refusals = Refusals()
    meter = Meter(refusals, lambda: {"tls/a:1": "a", "tls/b:2": "b"})
    meter.stop()
    meter.count("a", 10**6)
    meter.count("b", 10**6)
    meter.look()
    assert set(refusals.counts()) == {("b", "flood")}


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's counters are read on Linux only")
def test_unauthenticated_connections_are_counted():
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        before = most_callers()  # give or take a socket of other code in this process
        callers = [socket.create_connection(server.getsockname()) for _ in range(30)]
        until(lambda: most_callers() > before + 50)  # both ends are in this process
        for caller in callers:
            caller.close()
        assert before + 20 < most_callers() < before + 40  # whom Zenoh has yet to clear away
        let_in = [server.accept()[0] for _ in callers]
        assert before + 20 < most_callers() < before + 40
        for end in let_in:
            end.close()
        assert most_callers() < before + 10


def test_the_table_of_the_kernel_is_read_only_where_there_may_be_a_crowd(monkeypatch):
    door, reads = Door(1, friends=2), []
    monkeypatch.setattr(door, "count", lambda: reads.append(None) or (0, CROWD + 1))
    monkeypatch.setattr(module, "most_callers", lambda: CROWD)
    assert not door.crowd_left() and reads == []
    monkeypatch.setattr(module, "most_callers", lambda: CROWD + 1)
    assert door.crowd_left() and reads == [None]
    door.close()
