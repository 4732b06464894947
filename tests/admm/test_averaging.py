"""Averages of released vectors cost nothing and help."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn import Graph, Logistic, PenaltyPerturbation, Problem, simulate
from taciturn.admm.averaging import gossip, gossip_steps, gossip_weights, network_average
from taciturn.errors import ParameterError
from taciturn.objective import LocalObjective
from taciturn.planning.proxy import generate_proxy
from taciturn.privacy.noise import GaussianNoise

GRAPHS = [Graph.ring(7), Graph.star(5), Graph.complete(4), Graph.path(6)]


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
def test_gossip_keeps_the_mean_and_reaches_it(graph: Graph) -> None:
    rng = np.random.default_rng(0)
    released = rng.normal(size=(3, graph.n, 2))
    W = gossip_weights(graph).toarray()
    assert np.allclose(W, W.T) and np.allclose(W.sum(axis=1), 1) and np.all(W >= -1e-15)
    once = gossip(released, graph, 1)
    assert np.allclose(network_average(once), network_average(released))
    assert np.allclose(once, np.einsum("ij,rjd->rid", W, released))
    many = gossip(released, graph, gossip_steps(graph, 1e-8))
    assert np.allclose(many, network_average(released)[:, None, :], atol=1e-6)


def test_weighted_gossip_reaches_the_weighted_average() -> None:
    graph, weights = Graph.ring(5), [1.0, 2.0, 3.0, 4.0, 90.0]
    released = np.random.default_rng(1).normal(size=(5, 3))
    many = gossip(released, graph, gossip_steps(graph, 1e-10), weights)
    expected = network_average(released, weights)
    assert np.allclose(many, expected, atol=1e-6)
    assert np.allclose(expected, np.average(released, axis=0, weights=weights))


def test_gossip_moves_along_links_only() -> None:
    released = np.zeros((6, 1))
    released[0] = 1.0
    held = gossip(released, Graph.path(6), 2)[:, 0]
    assert np.all(held[:3] > 0) and np.all(held[3:] == 0)


def test_averaging_costs_nothing_and_lowers_the_loss() -> None:
    proxy = generate_proxy(12, 4_000, "classification", seed=1)
    sites = [(proxy.X[i::8], proxy.y[i::8]) for i in range(8)]
    problem = Problem(sites, C=1.0, regularization=1e-3)
    method = PenaltyPerturbation(0.01, 0.01, GaussianNoise(2.0))
    run = simulate(problem, Graph.ring(8), method, rounds=3, repeats=5, history=True)
    before = run.certificate(1e-5).epsilon
    everyone = LocalObjective(proxy.X, proxy.y, loss=Logistic(), C=1.0, regularization=1.0, sites=1)
    alone = everyone.metrics(run.coef.reshape(-1, 12))[0].mean()
    gossiped = everyone.metrics(gossip(run.coef, Graph.ring(8), 2).reshape(-1, 12))[0].mean()
    averaged = everyone.metrics(network_average(run.coef))[0].mean()
    over_rounds = everyone.metrics(run.average(last=2))[0].mean()
    assert averaged < gossiped < alone
    assert over_rounds < alone
    assert run.certificate(1e-5).epsilon == before
    assert np.allclose(run.average(), network_average(run.coef))


def test_weights_are_checked() -> None:
    for weights in ([1.0], [0.0, 0.0], [-1.0, 2.0]):
        with pytest.raises(ParameterError, match="weights"):
            network_average(np.zeros((2, 3)), weights)
    with pytest.raises(ParameterError, match="one vector per site, 5; got 2"):
        gossip(np.zeros((2, 3)), Graph.ring(5), 1)
