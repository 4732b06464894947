"""The squared loss: ordinary least squares without privacy; private where targets have a public bound."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import ParameterError

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (400, 3)) / np.sqrt(3)
Y = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.standard_normal(400)
NOISY = tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(0.1))


def problem(loss: tt.Squared, scale: float = 1.0) -> tt.Problem:
    sites = [(X[i::4], scale * Y[i::4]) for i in range(4)]
    return tt.Problem(sites, loss=loss, C=50.0, regularization=0.04)


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_without_privacy_it_is_ridge_regression(scale: float) -> None:
    run = tt.simulate(problem(tt.Squared(), scale), "complete", tt.MADMM(2.0, 2.0), rounds=200, tol=1e-8)
    weight = 50.0 / 100  # C / B
    exact = np.linalg.solve(weight * X.T @ X + 0.04 * np.eye(3), weight * X.T @ (scale * Y))
    np.testing.assert_allclose(run.coef[0].mean(axis=0), exact, rtol=1e-4)


@pytest.mark.parametrize("method", [NOISY, tt.MaskedDescent(epsilon=1.0, delta=1e-5, colluding=1)])
def test_without_a_bound_on_targets_every_private_method_refuses_it(method) -> None:
    with pytest.raises(ParameterError, match="Give `target_bound`"):
        tt.simulate(problem(tt.Squared()), "complete", method, rounds=5)


def test_one_record_moves_the_gradient_by_no_more_than_is_charged_for() -> None:
    """2 s1 C / B with s1 = 2 target_bound; the private cost grows with the bound."""
    loss = tt.Squared(target_bound=3.0)
    z = RNG.uniform(-50, 50, 1000)
    assert np.abs(loss.slope(z)).max() == loss.slope_bound == 6.0
    assert np.array_equal(loss.slope(z[np.abs(z) <= 6]), z[np.abs(z) <= 6])
    costs = [
        tt.simulate(problem(tt.Squared(target_bound=b)), "complete", NOISY, rounds=3)
        .certificate(1e-5)
        .epsilon
        for b in (0.5, 1.0, 2.0)
    ]
    assert costs[0] < costs[1] < costs[2]


def test_with_a_bound_it_is_private_and_learns() -> None:
    method = tt.MaskedDescent(epsilon=8.0, delta=1e-5, colluding=1)
    run = tt.simulate(problem(tt.Squared(target_bound=1.0)), "complete", method, rounds=20, seed=0)
    certificate = run.certificate(1e-5)
    assert certificate.epsilon <= 8.0 and certificate.run.loss.name == "squared"
    tt.Certificate.from_json(certificate.to_json()).verify()
    rest = Y - X @ run.coef[0, 0]
    assert np.mean(rest**2) < 0.3 * np.mean(Y**2)
