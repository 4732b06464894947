"""engine="auto" chooses Ray only where it is expected to be faster."""

from __future__ import annotations

import importlib.util
import sys

import pytest

import taciturn as tt
from support.problems import make_sites
from support.sharded import setup_of
from taciturn.objective import SourcedProblem
from taciturn.runtime import engine_selection as choice


def pick(**changes):
    settings = {"sites": 10, "rounds": 50, "entries": 10**6, "cores": 2, "shards": 2, "start": choice.START}
    return choice.faster(**{**settings, **changes})


def test_auto_keeps_small_runs_local_and_sends_many_sites_to_ray():
    assert pick() == "local"
    assert pick(sites=10_000) == "ray"


def test_auto_stays_local_on_one_core():
    assert pick(sites=10**6, cores=1, shards=1) == "local"


def test_auto_uses_ray_only_if_the_cluster_has_more_cores():
    assert pick(entries=10**10) == "local", "threads do as well"
    assert pick(entries=10**10, shards=16) == "ray"


def test_auto_uses_a_running_cluster_earlier():
    between = dict(sites=300)
    assert pick(**between) == "local" and pick(**between, start=choice.JOIN) == "ray"


def test_auto_keeps_small_sites_local_if_threads_can_share_them():
    assert pick(sites=0, small=10_000) == "local"
    assert pick(sites=0, small=10**6, shards=16) == "ray"


def test_sites_that_hold_the_lock_are_solved_on_one_thread(ring, monkeypatch):
    monkeypatch.setattr(choice, "cpus_here", lambda: 4)
    problem = tt.Problem(make_sites(n=5, rows=9000), C=20.0, regularization=0.5)
    setup = setup_of(problem, ring, tt.ADMM(0.5), rounds=1, repeats=3)
    assert choice.threads_for(setup) == 1
    monkeypatch.setattr(choice, "THREADED", 3 * problem.dimension * problem.samples.mean())
    assert choice.threads_for(setup) == 4


def test_threads_share_the_kernels_where_there_is_something_to_share(problem, ring, monkeypatch):
    monkeypatch.setattr(choice, "cpus_here", lambda: 4)
    assert choice.threads_for(setup_of(problem, ring, tt.ADMM(0.5), rounds=1, repeats=3)) == 1
    assert choice.threads_for(setup_of(problem, ring, tt.ADMM(0.5), rounds=1, repeats=100)) == 4


class Cluster:
    """What is asked of Ray."""

    cpus = 0

    def is_initialized(self):
        return self.cpus > 0

    def cluster_resources(self):
        return {"CPU": float(self.cpus)}


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "ray", Cluster())
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return monkeypatch


def test_auto_decides_from_the_known_sizes_of_a_run(installed, problem, ring):
    seen = {}
    installed.setattr(choice, "faster", lambda **facts: seen.update(facts) or "local")
    choice.choose(setup_of(problem, ring, tt.ADMM(0.5), rounds=7, repeats=3))
    assert seen["sites"] == 0 and seen["small"] == 5 * 3
    assert seen["rounds"] == 7 and seen["entries"] == 200 * 6 * 3
    assert seen["start"] == choice.START and seen["shards"] == min(5, seen["cores"])
    sourced = SourcedProblem([lambda: None] * 5, C=1.0, regularization=0.5)
    installed.setattr(sys.modules["ray"], "cpus", 64)
    choice.choose(setup_of(sourced, ring, tt.ADMM(0.5), rounds=7))
    assert seen["sites"] == 5 and seen["small"] == 0
    assert seen["entries"] == 0 and seen["start"] == choice.JOIN and seen["shards"] == 5
    installed.setattr(sys.modules["ray"], "cpus", 0)
    installed.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    choice.choose(setup_of(sourced, ring, tt.ADMM(0.5), rounds=7))
    assert seen["start"] == choice.JOIN


def test_jobs_are_distributed_if_that_is_faster(installed):
    installed.setattr(sys.modules["ray"], "cpus", 4)
    assert choice.choose_for_jobs(10.0, 8) == "ray"
    assert choice.choose_for_jobs(10.0, 1) == choice.choose_for_jobs(0.01, 8) == "local"
    assert choice.choose_for_jobs(10.0, 0) == "local"
    installed.setattr(sys.modules["ray"], "cpus", 1)
    assert choice.choose_for_jobs(10.0, 8) == "local"


def test_a_job_among_many_takes_one_core():
    with choice.limited_to(1):
        assert choice.cpus_here() == 1
    here = choice.cpus_here()
    with choice.limited_to(10**6):
        assert choice.cpus_here() == here >= 1
