"""Planned costs equal the costs after the run, and calibration stays within the budget."""

from dataclasses import replace

import numpy as np
import pytest

import taciturn as tt
from taciturn.paper.figures.build import certify_run, rate_within


@pytest.fixture(scope="module")
def problem() -> tt.Problem:
    rng = np.random.default_rng(1)
    sites = []
    for rows in (30, 40, 50):
        X = rng.normal(size=(rows, 4))
        X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
        sites.append((X, np.where(X[:, 0] > 0, 1.0, -1.0)))
    return tt.Problem(sites, C=20.0, regularization=0.1)


def _method(rate: float) -> tt.PenaltyPerturbation:
    noise = tt.NormNoise(tt.Geometric(rate, 1.05))
    return tt.PenaltyPerturbation(tt.Geometric(1.0, 1.1), 1.0, noise, output_noise=tt.NormNoise(1e4))


def test_a_planned_certificate_is_the_one_that_the_run_will_have(problem: tt.Problem) -> None:
    graph = tt.Graph.ring(3)
    planned = certify_run(problem, graph, _method(2.0), rounds=5, delta=1e-5)
    run = tt.simulate(problem, graph, _method(2.0), rounds=5, tol=1e-8)
    found = run.certificate(1e-5)
    assert found.released is not None and planned.to_json() == replace(found, released=None).to_json()


def test_a_budget_is_met_from_below(problem: tt.Problem) -> None:
    graph = tt.Graph.ring(3)

    def cost(rate: float) -> float:
        return certify_run(problem, graph, _method(rate), rounds=2, delta=1e-5).epsilon

    rate = rate_within(cost, 1.5)
    assert cost(rate) <= 1.5 < cost(1.003 * rate)


@pytest.mark.parametrize("epsilon", [0.03, 5.0, 4e4])
def test_rates_far_from_one_are_found(epsilon: float) -> None:
    assert 0.998 * epsilon <= rate_within(lambda rate: rate, epsilon) <= epsilon


def test_a_budget_that_no_noise_can_meet_is_refused() -> None:
    with pytest.raises(tt.errors.ParameterError, match=r"at least 2\.01 "):
        rate_within(lambda rate: 2 + rate, 1.0)
