"""A real cluster for the tests of this folder: two raylets on loopback."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

if importlib.util.find_spec("ray") is None:  # an extra, which `make test` installs
    collect_ignore_glob = ["test_*.py"]

SOURCE = Path(__file__).resolve().parents[3]
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on loopback
    "RAY_worker_register_timeout_seconds": "600",  # a busy machine is no lost one
    "RAY_health_check_timeout_ms": "60000",
    "PYTHONPATH": os.pathsep.join([str(SOURCE / "src"), str(SOURCE / "tests")]),
}


@pytest.fixture(scope="session")
def ray_environment():
    """What the processes of a cluster need to know, for this process and its children."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.delenv("RAY_ADDRESS", raising=False)
        yield


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Workers that start slowly are waited for."""
    from taciturn.runtime.ray import worker

    monkeypatch.setattr(worker, "PATIENCE", 600.0)


@pytest.fixture(scope="session")
def two_nodes(ray_environment):
    """The address of a cluster of two nodes with one CPU each."""
    import ray
    from ray.cluster_utils import Cluster

    node = {
        "node_ip_address": "127.0.0.1",
        "num_cpus": 1,
        "object_store_memory": 80 * 2**20,
        "include_dashboard": False,
    }
    wait = Cluster._wait_for_node
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cluster, "_wait_for_node", lambda cluster, node, timeout=30: wait(cluster, node, 600))
        cluster = Cluster(initialize_head=True, head_node_args=node)
        try:
            cluster.add_node(**node)
            yield cluster.address
        finally:
            ray.shutdown()
            cluster.shutdown()


@pytest.fixture
def joined(two_nodes):
    """This process is part of the cluster, as a user's may be before `taciturn` is called."""
    from taciturn.runtime.ray.cluster import cluster

    with cluster(two_nodes, 1):
        yield two_nodes
