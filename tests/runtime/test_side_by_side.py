"""Many sites in one node: every vector equals that of a node with this site alone, to the last bit."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import taciturn as tt
from support.oracle import oracle
from support.problems import make_sites
from support.sharded import make_shards, run_shards, setup_of
from taciturn.methods.run import Recorder
from taciturn.objective.solver.small.sites import small_form
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.runtime.local import LocalNetwork, run_local
from taciturn.runtime.setup import Setup

PER_SITE = [tt.Geometric(0.5 + 0.1 * i, 1.02) for i in range(6)]
RATES = tt.NormNoise([3.0 + i for i in range(6)])
METHODS = {
    "admm": tt.ADMM(0.5),
    "modified": tt.MADMM(PER_SITE, [0.5 - 0.01 * i for i in range(6)]),
    "penalty": tt.PenaltyPerturbation(PER_SITE, 0.5, RATES, output_noise=tt.NormNoise(1e9)),
    "dual": tt.DualPerturbation(0.5, tt.GaussianNoise(0.3), grid=2.0**-20, clip=8.0),
    "primal": tt.PrimalPerturbation(0.5, tt.GaussianNoise(0.1)),
}
GRAPH = tt.Graph.from_edges([(0, 3), (3, 1), (1, 4), (4, 2), (2, 5), (5, 0), (2, 3), (0, 4)])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("start", ["zeros", "random"])
@pytest.mark.parametrize("name", METHODS)
def test_the_local_engine_equals_nodes_of_one_site_each(name: str, start: str, threads: int) -> None:
    sites = [make_sites(n=1, rows=15 + 9 * i, seed=i)[0] for i in range(6)]
    sites[2] = make_sites(n=1, rows=9000, seed=2)[0]  # the general solver's
    sites[4] = sparse.csr_array(sites[4][0]), sites[4][1]
    problem = tt.Problem(sites, loss=tt.Logistic(), C=10.0, regularization=0.5)
    forms = ["dense", "dense", None, "dense", "sparse", "dense"]
    assert [small_form(problem.site(i)) for i in range(6)] == forms
    setup = setup_of(problem, GRAPH, METHODS[name], rounds=12, repeats=2, seed=3, start=start, history=True)
    released, charged = oracle(setup)
    run = run_local(setup, threads=threads)
    assert np.array_equal(run.history, released)
    assert sorted(charged) == [(t, i) for t in range(1, 13) for i in range(6)]
    for i in range(6):
        assert run.ledger.columns(i).t.tolist() == list(range(1, 13))
        np.testing.assert_array_equal(run.ledger.columns(i).eta, setup.prepared.tables.eta[i])


@pytest.mark.parametrize("loss", [tt.SmoothHinge(0.3), tt.LogCosh(0.7)], ids=repr)
def test_local_engine_equals_single_site_nodes_for_every_loss(loss: tt.Logistic) -> None:
    problem = tt.Problem(make_sites(n=6), loss=loss, C=10.0, regularization=0.5)
    setup = setup_of(problem, GRAPH, METHODS["penalty"], rounds=4, repeats=3, history=True)
    assert np.array_equal(run_local(setup, threads=2).history, oracle(setup)[0])


def test_many_tiny_sites_of_few_rows() -> None:
    """Fewer rows than features, more sites than parts, and the recorded metrics."""
    sites = make_sites(n=60, rows=4)
    problem = tt.Problem(sites, loss=tt.Logistic(), C=2.0, regularization=0.5)
    graph = tt.Graph.random_regular(60, 4, seed=1)
    setup = setup_of(
        problem, graph, tt.PenaltyPerturbation(0.5, 0.5, tt.NormNoise(3.0)), rounds=3, history=True
    )
    run = run_local(setup, threads=1)
    assert np.array_equal(run.history, oracle(setup)[0])
    for t, f in enumerate(run.history):
        measured = [problem.site(i).metrics(f[:, i]) for i in range(60)]
        np.testing.assert_allclose(run.loss[:, t], np.mean([m[0] for m in measured], axis=0), rtol=1e-12)
        np.testing.assert_allclose(run.accuracy[:, t], np.mean([m[1] for m in measured], axis=0), rtol=1e-12)


def test_refused_charge_reveals_nothing_of_its_round() -> None:
    """The charge comes before a neighbour or the record can see the vectors."""
    problem = tt.Problem(make_sites(n=6), loss=tt.Logistic(), C=10.0, regularization=0.5)
    setup = setup_of(problem, GRAPH, METHODS["penalty"], rounds=4)

    class Refusing(MemoryLedger):
        def charge_round(self, charges: object) -> None:
            raise RuntimeError("no budget")

    ledger = Refusing(setup.run_facts(), setup.site_facts())
    network, put = LocalNetwork(replace(setup, measure=False), ledger, parts=2), []
    network.messages.put = lambda *sent: put.append(sent)  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as pool, pytest.raises(RuntimeError, match="no budget"):
        list(network.rounds(pool.submit))
    assert put == [] and network.messages.sent == [0, 0]


@pytest.mark.parametrize("shards", [0, 1, 2])
@pytest.mark.slow
def test_a_run_holds_at_most_eight_vectors_per_site_and_repeat_beside_the_rows(shards: int) -> None:
    """At the peak: two rounds of messages, three of models, the dual variables, what was heard, one step.

    0 shards is the local engine.
    """
    n, repeats, d = 1500, 10, 40
    problem = tt.Problem([(np.eye(d)[:2], [1.0, -1.0])] * n, C=1.0, regularization=0.5)
    method = tt.PenaltyPerturbation(0.5, 0.5, tt.NormNoise(3.0))
    setup = setup_of(problem, tt.Graph.ring(n), method, rounds=3, repeats=repeats)
    advance(setup, shards)  # compiles, and puts the rows together
    tracemalloc.start()
    try:
        advance(setup, shards)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    objects = 3000 * n  # Python's, the graph's, the ledger's, the losses'
    assert peak <= 8 * 8 * n * repeats * d + objects


def advance(setup: Setup, shards: int) -> None:
    if shards:
        run_shards(make_shards(setup, shards), 3)
        return
    network = LocalNetwork(setup, MemoryLedger(setup.run_facts(), setup.site_facts()), parts=8)
    recorder = Recorder(3, setup.repeats, history=False)
    for t in network.rounds(lambda work, *rest: work(*rest)):
        recorder.record(t, network.models(t), *network.metrics[t % 2])
