"""Averages of released vectors cost nothing and help."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn import Graph, Logistic, PenaltyPerturbation, Problem, simulate
from taciturn.core.errors import ParameterError
from taciturn.methods.admm.updates import network_average
from taciturn.objective import LocalObjective
from taciturn.planning.proxy import generate_proxy
from taciturn.privacy.noise import GaussianNoise


def test_the_weighted_average() -> None:
    weights = [1.0, 2.0, 3.0, 4.0, 90.0]
    released = np.random.default_rng(1).normal(size=(5, 3))
    assert np.allclose(network_average(released, weights), np.average(released, axis=0, weights=weights))


def test_averaging_costs_nothing_and_lowers_the_loss() -> None:
    proxy = generate_proxy(12, 4_000, "classification", seed=1)
    sites = [(proxy.X[i::8], proxy.y[i::8]) for i in range(8)]
    problem = Problem(sites, C=1.0, regularization=1e-3)
    method = PenaltyPerturbation(0.01, 0.01, GaussianNoise(2.0))
    run = simulate(problem, Graph.ring(8), method, rounds=3, repeats=5, history=True)
    before = run.certificate(1e-5).epsilon
    everyone = LocalObjective(proxy.X, proxy.y, loss=Logistic(), C=1.0, regularization=1.0, sites=1)
    alone = everyone.metrics(run.coef.reshape(-1, 12))[0].mean()
    averaged = everyone.metrics(network_average(run.coef))[0].mean()
    over_rounds = everyone.metrics(run.average(last=2))[0].mean()
    assert averaged < alone
    assert over_rounds < alone
    assert run.certificate(1e-5).epsilon == before
    assert np.allclose(run.average(), network_average(run.coef))


def test_weights_are_checked() -> None:
    for weights in ([1.0], [0.0, 0.0], [-1.0, 2.0]):
        with pytest.raises(ParameterError, match="weights"):
            network_average(np.zeros((2, 3)), weights)
