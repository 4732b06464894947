"""Distribution of the noise: unseeded, through the secure streams of real runs, and seeded; p = 1e-9."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import taciturn as tt
from taciturn.privacy import noise as noises
from taciturn.rng import SecureStreams, SeededStreams

LEVEL, DRAWS = 1e-9, 20_000


@pytest.fixture(params=["secure", "seeded"])
def draw(request):
    """(noise, scale, d, number of draws) -> so many vectors."""

    def draw(noise, scale, d, n=DRAWS):
        streams = SecureStreams() if request.param == "secure" else SeededStreams(7)
        return noises.draw(noise, streams, "noise", 1, np.arange(n), np.full(n, scale), (1, d))[:, 0]

    return draw


@pytest.mark.parametrize(("d", "rate"), [(1, 3.0), (2, 0.5), (7, 3.0), (105, 3.0)])
def test_norm_is_gamma_and_half_the_noise_is_caught(d, rate, draw):
    e = draw(tt.NormNoise(rate=1.0), rate, d, DRAWS if d < 50 else 4000)
    length = np.linalg.norm(e, axis=1)
    right = stats.gamma(d, scale=1 / rate)
    assert stats.kstest(length, right.cdf).pvalue > LEVEL
    assert stats.kstest(length / 2, right.cdf).pvalue < LEVEL
    assert stats.kstest(length, stats.gamma(d + 0.5, scale=1 / rate).cdf).pvalue < LEVEL or d > 50


@pytest.mark.parametrize("d", [2, 3, 7])
def test_direction_is_uniform_and_independent_of_the_norm(d, draw):
    """A coordinate of a uniform direction has (1 + u_1)/2 ~ Beta((d-1)/2, (d-1)/2), along any axis."""
    e = draw(tt.NormNoise(rate=1.0), 2.0, d)
    length = np.linalg.norm(e, axis=1)
    u = e / length[:, None]
    law = stats.beta((d - 1) / 2, (d - 1) / 2)
    axes = np.vstack([np.eye(d)[0], np.eye(d)[-1], np.ones(d) / np.sqrt(d)])
    for axis in axes:
        assert stats.kstest((1 + u @ axis) / 2, law.cdf).pvalue > LEVEL / 3
    assert stats.spearmanr(length, u[:, 0]).pvalue > LEVEL
    tilted = u + 0.2 * axes[0]
    tilted /= np.linalg.norm(tilted, axis=1, keepdims=True)
    assert stats.kstest((1 + tilted @ axes[0]) / 2, law.cdf).pvalue < LEVEL


def test_one_dimension_has_fair_signs(draw):
    e = draw(tt.NormNoise(rate=1.0), 1.0, 1)
    assert stats.binomtest(int((e > 0).sum()), DRAWS).pvalue > LEVEL


@pytest.mark.parametrize("std", [0.2, 4.0])
def test_gaussian_coordinates(std, draw):
    e = draw(tt.GaussianNoise(std=1.0), std, 5)
    assert stats.kstest(e.ravel(), stats.norm(scale=std).cdf).pvalue > LEVEL
    assert stats.kstest(e.ravel() / 2, stats.norm(scale=std).cdf).pvalue < LEVEL
    assert stats.kstest((e**2).sum(axis=1) / std**2, stats.chi2(5).cdf).pvalue > LEVEL
    assert stats.pearsonr(e[:, 0], e[:, 1]).pvalue > LEVEL


def test_mean_log_density_is_the_entropy_of_the_sampler(draw):
    """E ln density over the sampler's own draws: sampler and density are of one distribution."""
    for noise, scale in ((tt.NormNoise(rate=1.0), 1.7), (tt.GaussianNoise(std=1.0), 1.7)):
        d = 4
        values = noise.log_density(draw(noise, scale, d), scale)
        peak = float(noise.log_density(np.zeros(d), scale))
        expected = peak - (d if noise.kind == "norm" else d / 2)
        assert abs(values.mean() - expected) < 6.5 * values.std() / np.sqrt(DRAWS)
