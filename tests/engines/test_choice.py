"""engine="auto": Ray where it should be done first, and nowhere else."""

from __future__ import annotations

import importlib.util

import pytest

import tacit
from sharded import setup_of
from tacit.engines import choice


def pick(**changes):
    settings = {"sites": 10, "rounds": 50, "entries": 10**6, "cores": 2, "shards": 2, "start": choice.START}
    return choice.faster(**{**settings, **changes})


def test_small_runs_stay_here_and_many_sites_go():
    assert pick() == "local"
    assert pick(sites=10_000) == "ray"


def test_one_core_has_nothing_to_gain():
    assert pick(sites=10**6, cores=1, shards=1) == "local"


def test_much_numpy_gains_from_more_cores_than_there_are_here_and_only_then():
    assert pick(entries=10**10) == "local", "threads do as well"
    assert pick(entries=10**10, shards=16) == "ray"


def test_a_running_cluster_pays_earlier():
    between = dict(sites=300)
    assert pick(**between) == "local" and pick(**between, start=choice.JOIN) == "ray"


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(choice, "_joined_cpus", lambda: None)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return monkeypatch


def test_a_setup_is_weighed_with_what_is_known_of_it(installed, problem, ring):
    seen = {}
    installed.setattr(choice, "faster", lambda **facts: seen.update(facts) or "local")
    choice.choose(setup_of(problem, ring, tacit.ADMM(0.5), rounds=7, repeats=3))
    assert seen["sites"] == 5 and seen["rounds"] == 7 and seen["entries"] == 200 * 6 * 3
    assert seen["start"] == choice.START and seen["shards"] == min(5, seen["cores"])
    sourced = tacit.SourcedProblem([lambda: None] * 5, C=1.0, regularization=0.5)
    installed.setattr(choice, "_joined_cpus", lambda: 64)
    choice.choose(setup_of(sourced, ring, tacit.ADMM(0.5), rounds=7))
    assert seen["entries"] == 0 and seen["start"] == choice.JOIN and seen["shards"] == 5
    installed.setattr(choice, "_joined_cpus", lambda: None)
    installed.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    choice.choose(setup_of(sourced, ring, tacit.ADMM(0.5), rounds=7))
    assert seen["start"] == choice.JOIN
