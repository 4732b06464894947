"""The estimates of the attack on problems with a known answer."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.auditing.attack import chance_cosine, cosine, direction, estimate_u, geometric_fit, residual

RNG = np.random.default_rng(0)


def test_chance_is_that_of_random_directions() -> None:
    for d in (2, 3, 50):
        drawn = np.abs(cosine(np.random.default_rng(d).normal(size=(200_000, d)), np.eye(d)[0]))
        assert chance_cosine(d) == pytest.approx(drawn.mean(), rel=0.01)
    assert cosine(np.zeros(3), np.ones(3)) == 0.0


def test_the_noise_averages_out_and_the_record_stays() -> None:
    v = np.array([0.6, 0.0, 0.8])
    u = np.full((4000, 2), 0.5)
    residuals = RNG.normal(size=(4000, 2, 3)) - u[..., None] * v
    assert np.all(cosine(direction(residuals, u), v) > 0.97)
    assert np.all(cosine(direction(residuals[:5], u[:5]), v) < 0.97)


def test_without_noise_eta_is_found_by_least_squares() -> None:
    A, B = RNG.normal(size=(5, 2, 20)), RNG.normal(size=(5, 2, 20))
    B = 1e-6 * B - 0.3 * A
    u = estimate_u(A, B, np.zeros(20), noise="none", scale=1.0, centre=1.0)
    assert u == pytest.approx(0.3, rel=1e-4)
    assert np.allclose(residual(u, A, B), 0, atol=1e-4)


@pytest.mark.parametrize("noise", ["gaussian", "norm"])
def test_with_noise_eta_is_found_by_likelihood(noise: str) -> None:
    """f solves f + u H f = -e + u g, in 40 dimensions: one unknown against 40 equations."""
    d, u, sigma = 40, 0.7, 0.2
    H = np.diag(np.linspace(0.0, 3.0, d))
    g = RNG.normal(size=d)
    scale = sigma if noise == "gaussian" else np.sqrt(d) / sigma
    e = sigma * RNG.normal(size=(300, d))
    if noise == "norm":
        e *= RNG.gamma(d, 1 / scale, size=(300, 1)) / np.linalg.norm(e, axis=1, keepdims=True)
    f = np.linalg.solve(np.eye(d) + u * H, (u * g - e).T).T
    A, B = g - f @ H, -f
    assert np.allclose(residual(np.full(300, u), A, B), e)
    found = estimate_u(A, B, np.diag(H), noise=noise, scale=scale, centre=0.01)
    assert np.median(found) == pytest.approx(u, rel=0.1)
    assert np.quantile(np.abs(np.log(found / u)), 0.8) < 0.5
    blind = estimate_u(A, B, np.zeros(d), noise=noise, scale=scale, centre=0.01)
    assert np.median(blind) < 0.95 * u


def test_geometric_fit_is_exact_on_geometric_rounds() -> None:
    u = np.outer(2.0 * 0.9 ** np.arange(6), [1.0, 3.0])
    assert geometric_fit(u) == pytest.approx(u)
    assert geometric_fit(u[:1]) == pytest.approx(u[:1])
    noisy = u * np.exp(0.1 * RNG.normal(size=u.shape))
    assert np.abs(geometric_fit(noisy) / u - 1).mean() < np.abs(noisy / u - 1).mean()
