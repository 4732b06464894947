"""Every engine keeps what `Engine` promises: the bits of the nodes' own loops, each round charged once."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import taciturn as tt
from support.oracle import oracle
from support.problems import make_sites
from support.sharded import setup_of
from taciturn.core.errors import DataError, ParameterError
from taciturn.objective import SourcedProblem
from taciturn.runtime.local import run_local
from taciturn.runtime.setup import Setup
from taciturn.runtime.simulate import Engine, one_cluster

GRAPH = tt.Graph.from_edges([(0, 2), (2, 4), (4, 1), (1, 3), (0, 3)])
PENALTY = [tt.Geometric(0.5 + 0.1 * i, 1.02) for i in range(5)]
METHODS = {
    "none": tt.MADMM(PENALTY, 0.5),
    "penalty": tt.PenaltyPerturbation(
        PENALTY, 0.5, tt.NormNoise([3.0 + i for i in range(5)]), output_noise=tt.NormNoise(1e6)
    ),
    "dual": tt.DualPerturbation(0.5, tt.GaussianNoise(0.3), grid=2.0**-20, clip=8.0),
    "primal": tt.PrimalPerturbation(PENALTY, tt.GaussianNoise(0.1), dual_step=0.5),
}


class Local:
    """The local engine with so many threads."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def run(self, setup: Setup, *, show: bool | None = None) -> Any:
        return run_local(setup, threads=self.threads, show=show)


@pytest.fixture(scope="module", params=["one thread", "three threads", "ray"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param != "ray":
        yield Local(1 if request.param == "one thread" else 3)
        return
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is an extra")
    from taciturn.runtime import RayEngine

    with one_cluster("ray"):
        yield RayEngine(shards=2)


@pytest.fixture(scope="module")
def problem() -> tt.Problem:
    """Sites of different size."""
    sites = [make_sites(n=1, rows=20 + 7 * i, seed=i)[0] for i in range(5)]
    return tt.Problem(sites, loss=tt.Logistic(), C=10.0, regularization=0.5)


@pytest.mark.parametrize(
    ("name", "start"), [("none", "random"), ("penalty", "zeros"), ("dual", "random"), ("primal", "zeros")]
)
def test_engine_repeats_the_node_loops_and_charges_each_round_once(
    engine: Engine, problem: tt.Problem, name: str, start: Any
) -> None:
    setup = setup_of(problem, GRAPH, METHODS[name], rounds=12, repeats=2, seed=3, start=start, history=True)
    run, (released, _) = engine.run(setup, show=False), oracle(setup)
    assert run.history is not None and np.array_equal(run.history, released)
    assert np.array_equal(run.coef, released[-1])
    for i in range(5):
        assert run.ledger.columns(i).t.tolist() == list(range(1, 13))
        assert np.array_equal(run.ledger.columns(i).eta, setup.prepared.tables.eta[i])
    stated = replace(run.certificate(1e-5), released=None)  # a forecast knows no result yet
    assert stated.to_json() == setup.forecast(1e-5).to_json()


def test_it_records_every_round(engine: Engine, problem: tt.Problem) -> None:
    setup = setup_of(problem, GRAPH, METHODS["penalty"], rounds=5, repeats=3, history=True)
    run = engine.run(setup, show=False)
    assert run.history is not None and run.history.shape == (5, 3, 5, 6) and run.coef.shape == (3, 5, 6)
    for t, f in enumerate(run.history):
        measured = [problem.site(i).metrics(f[:, i]) for i in range(5)]
        np.testing.assert_allclose(run.loss[:, t], np.mean([m[0] for m in measured], axis=0), rtol=1e-12)
        np.testing.assert_allclose(run.accuracy[:, t], np.mean([m[1] for m in measured], axis=0), rtol=1e-12)
        far = np.linalg.norm(f - f.mean(axis=1, keepdims=True), axis=2).max(axis=1)
        np.testing.assert_allclose(run.consensus_gap[:, t], far, rtol=1e-10)
    assert run.settings["seed"] == 0 and run.settings["simulated"] and run.settings["rounds"] == 5
    assert engine.run(setup_of(problem, GRAPH, METHODS["penalty"], rounds=5), show=False).history is None


def test_rows_may_be_loaded_where_they_are_used_and_are_checked_there(engine: Engine) -> None:
    rows = make_sites(n=5)
    whole = tt.Problem(rows, loss=tt.Logistic(), C=10.0, regularization=0.5)
    here = tt.simulate(whole, GRAPH, METHODS["penalty"], rounds=3, progress=False)
    sourced = SourcedProblem([partial(tuple, site) for site in rows], C=10.0, regularization=0.5)
    there = engine.run(setup_of(sourced, GRAPH, METHODS["penalty"], rounds=3), show=False)
    assert np.array_equal(here.coef, there.coef)
    long = SourcedProblem([partial(tuple, (3 * X, y)) for X, y in rows], C=10.0, regularization=0.5)
    with pytest.raises(DataError):
        engine.run(setup_of(long, GRAPH, METHODS["penalty"], rounds=3), show=False)


def test_it_can_be_named_in_simulate(engine: Engine, problem: tt.Problem) -> None:
    assert isinstance(engine, Engine)
    run = tt.simulate(problem, GRAPH, METHODS["dual"], rounds=3, engine=engine, progress=False)
    here = tt.simulate(problem, GRAPH, METHODS["dual"], rounds=3, progress=False)
    assert np.array_equal(run.coef, here.coef)
    with pytest.raises(ParameterError, match="`engine`"):
        tt.simulate(problem, GRAPH, METHODS["dual"], rounds=3, engine="cloud")
