"""The workers: as many as the cluster has room for, with the packages of the driver."""

from __future__ import annotations

import pytest

from taciturn.core.errors import WorkerLost
from taciturn.runtime.ray import worker
from taciturn.runtime.shards import cut


def test_workers_with_other_package_versions_are_refused(joined, problem, ring, monkeypatch):
    monkeypatch.setattr(worker, "versions", lambda: {"numpy": "0.1"})
    with pytest.raises(
        WorkerLost, match=r"a worker has numpy [\d.]+, the driver has 0\.1; install the driver's version"
    ):
        with worker.crew(cut(ring, 1), problem):
            pass


def test_a_full_cluster_is_reported(joined, problem, ring, monkeypatch):
    with worker.crew(cut(ring, 2), problem) as workers:
        assert len(workers) == 2, "both CPUs are taken"
        monkeypatch.setattr(worker, "PATIENCE", 1.0)
        with pytest.raises(WorkerLost, match="1 of 1 workers found no free CPU on the cluster within 1 s"):
            with worker.crew(cut(ring, 1), problem):
                pass
