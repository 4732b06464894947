"""Clusters: joined or started on loopback, without output, and stopped afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid

import pytest

from support import raywork
from taciturn.core.errors import ParameterError
from taciturn.runtime.ray.cluster import cluster

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1 as /proc writes it


@pytest.fixture
def mark(monkeypatch, ray_environment):
    """All processes that a subprocess of this test starts can be found by this."""
    word = uuid.uuid4().hex
    monkeypatch.setenv("TACITURN_TEST_MARK", word)
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED")  # the engine must see to it by itself
    monkeypatch.delenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")
    return word


def left_behind(mark, *, but=()):
    """The marked processes that are still there after two minutes, but for this test and for `but`."""
    for _ in range(1200):
        found = {pid: name for pid, name in raywork.processes(mark).items() if pid != os.getpid()}
        found = {pid: name for pid, name in found.items() if not any(word in name for word in but)}
        if not found:
            return {}
        time.sleep(0.1)
    return found


def test_a_cluster_of_its_own(mark, tmp_path):
    done = subprocess.run(
        [sys.executable, raywork.__file__, "run_alone", str(tmp_path / "seen.json")],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "initialised: False\n" and done.returncode == 0, done.stderr
    assert done.stderr == ""
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert any("gcs_server" in name for name in seen["processes"])
    assert any("raylet" in name for name in seen["processes"])
    assert seen["addresses"] and set(seen["addresses"]) <= LOOPBACK
    assert [name for name in seen["loud"] if "raywork.py" not in name] == []
    assert left_behind(mark) == {}


def test_nothing_is_left_of_a_killed_driver(mark, tmp_path):
    for name in ("trap", "hold"):
        (tmp_path / name).touch()
    command = [sys.executable, raywork.__file__, "run_alone_until_killed", str(tmp_path)]
    with subprocess.Popen(command) as driver:
        while not (tmp_path / "sprung").exists() and driver.poll() is None:
            time.sleep(0.05)
        before = raywork.processes(mark)
        driver.kill()
    assert len(before) > 2 and (tmp_path / "sprung").exists()
    assert left_behind(mark, but=("Agent",)) == {}, "Ray's agents may take a minute to notice"


def test_a_joined_cluster_is_left_running(two_nodes):
    import ray

    for _ in range(2):
        with cluster(two_nodes, 1):
            assert len(ray.nodes()) == 2
        assert not ray.is_initialized()


@pytest.mark.parametrize("address", ["127.0.0.1:9", "127.0.0.1:port", "nowhere"])
def test_a_wrong_address_is_reported_at_once(address):
    with pytest.raises(
        ParameterError, match=f"`address` must be host:port of a running Ray cluster; got '{address}'"
    ):
        with cluster(address, 1):
            pass
