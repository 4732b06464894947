"""A solver that stops near the minimiser: output noise pays for the gap; one dimension, exact quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import taciturn as tt
from support import single_releases
from support.one_round import OneRound

GAP, ALPHA, SIGMA = 0.05, 0.8, 2.0
NORM, GAUSSIAN = tt.NormNoise(rate=1.0), tt.GaussianNoise(std=1.0)


def released(site, error, noise, scale, output, z):
    """Density of (solved f) + output noise at z: the solver ends error(f) away from each minimiser f."""
    f = np.linspace(-45, 45, 6001)[:, None]
    weights = np.exp(site.log_density(f, noise, scale)) * (f[1, 0] - f[0, 0])
    return (weights * output.pdf(z[:, None] - (f[:, 0] + error(f[:, 0])))).sum(axis=1)


@pytest.fixture(scope="module")
def pair():
    old = OneRound(tt.Logistic(), 1.2, 1.0, np.array([[1.0], [0.6]]), np.array([1.0, -1.0]))
    return old, old.with_sample(np.array([-1.0]), 1.0)


ERRORS = [
    (lambda f: np.full_like(f, GAP), lambda f: np.full_like(f, -GAP)),
    (lambda f: -GAP * np.sign(f), lambda f: GAP * np.sign(f)),
    (lambda f: GAP * np.cos(9 * f), lambda f: np.clip(np.round(f, 1) - f, -GAP, GAP)),
]


@pytest.mark.parametrize("errors", ERRORS)
@pytest.mark.parametrize("alpha_out", [1.0, 30.0])
def test_norm_output_noise_keeps_a_pure_guarantee(pair, errors, alpha_out):
    output = stats.laplace(scale=1 / alpha_out)
    z = np.linspace(-25, 25, 301)
    p, q = (released(site, error, NORM, ALPHA, output, z) for site, error in zip(pair, errors, strict=True))
    allowed = pair[0].pure(ALPHA) + float(single_releases.output_pure(GAP, alpha_out))
    assert np.abs(np.log(p / q)).max() <= allowed * (1 + 1e-6)


def test_the_extra_cost_is_needed(pair):
    """The same data, two solvers: with narrow output noise the gap alone is visible and must be charged."""
    output = stats.laplace(scale=1 / 30)
    old, _ = pair
    z = np.linspace(-1, 1, 201)
    p, q = (released(old, error, NORM, ALPHA, output, z) for error in ERRORS[1])
    assert np.abs(np.log(p / q)).max() > 0.5 * float(single_releases.output_pure(GAP, 30.0))


@pytest.mark.parametrize("errors", ERRORS)
def test_gaussian_output_noise_adds_to_the_renyi_bound(pair, errors):
    sigma_out = 0.2
    output = stats.norm(scale=sigma_out)
    z = np.linspace(-40, 40, 801)
    p, q = (
        released(site, error, GAUSSIAN, SIGMA, output, z) for site, error in zip(pair, errors, strict=True)
    )
    x = pair[0].x
    for order in (1.3, 2.0, 1 + 0.9 / x):
        exact = np.log((p**order * q ** (1 - order)).sum() * (z[1] - z[0])) / (order - 1)
        bound = single_releases.renyi_gaussian(order, pair[0].D, SIGMA, x)
        bound = bound + single_releases.output_renyi_gaussian(order, GAP, sigma_out)
        assert exact <= bound
