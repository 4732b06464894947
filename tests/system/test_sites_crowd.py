"""Many connections without a key: they keep a neighbour out only while they last."""

import os
import resource
import socket
import sys
import time

import pytest

from support.linkcut import until
from support.siteend import check_end
from support.siteprocess import Network
from support.sitework import network
from taciturn.sites.files.site import load_site
from taciturn.sites.wire.meter import Door, take_descriptors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted as Linux does it")
LIMIT, CALLERS = 1024, 1900  # more callers than descriptors: later clients cannot connect


def descriptors(entry):
    return len(os.listdir(f"/proc/{entry.process.pid}/fd"))


@pytest.mark.parametrize(("size", "seconds"), [(5, 12.0), (20, 1.0)])
def test_site_without_descriptors_accepts_its_neighbour_after_the_connections_close(ring_of, size, seconds):
    """Zenoh alone would close ten of them per second, which takes longer than the patience of a site here."""
    take_descriptors()
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2 * CALLERS:
        pytest.skip("this machine gives no process so many descriptors")
    ring, last = ring_of(size, "penalty", rounds=3, seed=1, site={"patience": 100.0}), size - 1
    port = int(ring.sites[0].listens().rsplit(":", 1)[1])
    ring.start(*range(1, last))
    ring.start(0, descriptors=LIMIT)
    crowd: list[socket.socket] = []
    try:
        until(lambda: listens(port))
        crowd += [socket.create_connection(("127.0.0.1", port)) for _ in range(CALLERS)]
        until(lambda: descriptors(ring.running[0]) >= LIMIT)
        ring.start(last)
        until(lambda: ring.sites[last].database.exists())
        time.sleep(seconds)  # it calls, and cannot get in
    finally:
        for caller in crowd:
            caller.close()
    assert ring.codes() == [0] * size, ring.logs()
    assert "unauthenticated clients" in ring.text(0) and "it is opened again" in ring.text(0)
    assert "a thread ended" not in ring.logs()
    check_end(ring.paths)


def listens(port):
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def test_many_connections_do_not_disturb_a_running_site(tmp_path):
    """A site reserves enough descriptors to keep its open links."""
    paths = network(tmp_path, [(0, 1)], job={"rounds": 30})
    port = int(load_site(paths[0]).listens().rsplit(":", 1)[1])
    running = Network(paths, {0: {"slow": 0.02}, 1: {"hold": 5}})
    until(lambda: load_site(paths[1]).database.exists() and listens(port))
    crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
    (paths[1].parent / "go").touch()
    try:
        running.finish()
    finally:
        for caller in crowd:
            caller.close()
    check_end(paths)


def test_process_raises_its_descriptor_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        take_descriptors()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, 2**20)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_open_and_closed_connections_are_counted():
    with socket.create_server(("127.0.0.1", 0)) as server:
        door = Door(server.getsockname()[1], friends=1)
        callers = [socket.create_connection(server.getsockname()) for _ in range(30)]
        until(lambda: door.count() == (30, 0))
        assert not door.crowd_left()
        for caller in callers[4:]:
            caller.close()
        until(lambda: door.count() == (4, 26))
        assert door.crowd_left()
        callers += [socket.create_connection(server.getsockname()) for _ in range(10)]
        until(lambda: door.count() == (14, 26))
        assert not door.crowd_left()  # the next crowd is there
        for caller in callers:
            caller.close()
        door.close()
