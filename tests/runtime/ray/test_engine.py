"""RayEngine on two nodes: the results of the local engine, bit by bit, even if workers are lost."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import taciturn as tt
from support import raywork
from support.problems import make_sites
from support.raywork import PP, told_rows, trapped_problem
from support.sharded import setup_of
from taciturn.core.errors import DataError, ParameterError, WorkerLost
from taciturn.objective import SourcedProblem
from taciturn.runtime import RayEngine

RING = tt.Graph.ring(5)


def same(run, other):
    for name in ("coef", "loss", "accuracy", "privacy_loss"):
        assert np.array_equal(getattr(run, name), getattr(other, name)), name
    np.testing.assert_allclose(run.consensus_gap, other.consensus_gap, rtol=1e-12, atol=1e-14)
    assert run.certificate().to_json() == other.certificate().to_json()
    assert run.settings == other.settings
    assert (run.history is None) == (other.history is None)
    if run.history is not None:
        assert np.array_equal(run.history, other.history)


@pytest.mark.parametrize("shards", [2, 3])
def test_equal_to_the_local_engine(joined, problem, shards):
    graph = tt.Graph.from_edges([(0, 2), (2, 4), (4, 1), (1, 3), (0, 3)])
    settings = {"rounds": 12, "repeats": 3, "seed": 5, "start": "random", "history": shards == 3}
    here = tt.simulate(problem, graph, PP, **settings)
    there = tt.simulate(problem, graph, PP, engine=RayEngine(shards=shards), **settings)
    same(there, here)


def test_rows_are_loaded_on_the_nodes_and_ray_is_left_as_it_was(joined, problem, tmp_path):
    """One CPU per node gives two shards on two nodes, in a process that had already joined the cluster."""
    import ray

    sources = [partial(told_rows, str(tmp_path), i) for i in range(5)]
    sourced = SourcedProblem(sources, C=20.0, regularization=0.5)
    there = tt.simulate(sourced, RING, PP, rounds=3, engine="ray")
    same(there, tt.simulate(problem, RING, PP, rounds=3))
    loaded = [path.name.split("-") for path in tmp_path.iterdir()]
    assert sorted(site for site, _, _ in loaded) == ["0", "1", "2", "3", "4"], "each once"
    assert len({node for _, node, _ in loaded}) == 2
    assert ray.is_initialized()


def test_the_drivers_memory_does_not_grow_with_the_rows(two_nodes):
    done = subprocess.run(
        [sys.executable, raywork.__file__, "run_on_many_rows", two_nodes],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = 4 * 40_000 * 40 * 8
    assert int(done.stdout) < rows / 10


def test_a_killed_worker_is_replaced_and_nothing_changes(joined, tmp_path):
    (tmp_path / "trap").touch()
    engine = RayEngine(checkpoint=tmp_path)
    settings = {"rounds": 24, "repeats": 2, "history": True}
    run = tt.simulate(trapped_problem(tmp_path), RING, PP, engine=engine, **settings)
    assert len((tmp_path / "sprung").read_text().split()) == 1, "a worker died after the checkpoint"
    same(run, tt.simulate(trapped_problem(tmp_path), RING, PP, **settings))


def test_a_killed_driver_resumes_where_it_was(joined, tmp_path):
    for name in ("trap", "hold"):
        (tmp_path / name).touch()
    command = [sys.executable, raywork.__file__, "run_until_killed", joined, str(tmp_path)]
    with subprocess.Popen(command) as driver:
        while not (tmp_path / "sprung").exists() and driver.poll() is None:
            time.sleep(0.05)
        driver.kill()
    problem = trapped_problem(tmp_path, deed="wait")
    settings = {"rounds": 24, "repeats": 2}
    with pytest.raises(ParameterError, match="`checkpoint` must belong to this run"):
        tt.simulate(problem, RING, PP, seed=1, engine=RayEngine(checkpoint=tmp_path), **settings)
    assert (tmp_path / "round10-record.npz").exists()
    run = tt.simulate(problem, RING, PP, engine=RayEngine(checkpoint=tmp_path), **settings)
    (tmp_path / "hold").unlink()
    same(run, tt.simulate(problem, RING, PP, **settings))


def test_ray_never_repeats_a_step_by_itself(joined, tmp_path):
    """Without a checkpoint a lost worker ends the run: nothing restarts it, nothing repeats its step."""
    problem = trapped_problem(tmp_path, armed="trap")
    (tmp_path / "trap").touch()
    with pytest.raises(WorkerLost, match=r"after round \d+, so the run is lost; give .* `checkpoint`"):
        tt.simulate(problem, RING, PP, rounds=3, engine="ray")
    assert len((tmp_path / "sprung").read_text().split()) == 1


def test_exception_in_a_worker_is_raised_unchanged(joined, tmp_path):
    problem = trapped_problem(tmp_path, armed="trap", deed="raise")
    (tmp_path / "trap").touch()
    with pytest.raises(RuntimeError, match=r"^a fault in the loss$"):
        tt.simulate(problem, RING, PP, rounds=3, engine=RayEngine(checkpoint=tmp_path))
    assert len((tmp_path / "sprung").read_text().split()) == 1, "a fault is not a loss: no second try"


def test_bad_rows_give_a_one_line_error(joined):
    sites = [(2 * X, y) for X, y in make_sites()]
    problem = SourcedProblem([lambda s=s: s for s in sites], C=20.0, regularization=0.5)
    with pytest.raises(DataError, match=r"^rows must have norm at most 1 .*\.$"):
        tt.simulate(problem, RING, PP, rounds=3, engine="ray")


def test_secret_noise_stays_in_one_process(problem):
    setup = replace(setup_of(problem, RING, PP, rounds=2), seed=None)
    with pytest.raises(ParameterError, match="`seed` must be given on a cluster"):
        RayEngine().run(setup)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"shards": 0}, "`shards` must be at least 1"),
        ({"every": 5}, "`every` must be at least 10"),
        ({"every": 15}, "`every` must be a multiple of 10; got 15"),
    ],
)
def test_settings_are_checked_before_any_cluster_is_touched(settings, words):
    with pytest.raises(ParameterError, match=words):
        RayEngine(**settings)
