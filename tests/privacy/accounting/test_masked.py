"""The protection by the noise of all honest sites, and the distance of discrete from Gaussian noise."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from support import single_releases
from taciturn.core.errors import ParameterError
from taciturn.privacy.accounting import masked_sums
from taciturn.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from taciturn.privacy.accounting.masked_sums import (
    CALM,
    Slack,
    discrete_slack,
    masked_epsilon,
    release_mu,
    stretch,
)

WIDE = 2.0**16


@pytest.mark.parametrize(
    ("sites", "expected"),
    [
        (5, {0: 0.885, 1: 1.0, 4: 2.16}),
        (20, {0: 0.972, 1: 1.0, 6: 1.18, 19: 5.25}),
        (100, {1: 1.0, 33: 1.24}),
    ],
)
def test_noise_set_for_one_colluder_against_more(sites, expected):
    alone = float(gaussian_mu(1.0, 1e-5)) * math.sqrt(sites - 1)
    found = single_releases.epsilon_against(alone, sites, 1e-5, WIDE, d=10, releases=1)
    assert found.shape == (sites,) and np.all(np.diff(found) > 0)
    for colluding, epsilon in expected.items():
        assert found[colluding] == pytest.approx(epsilon, abs=0.006)


def test_one_release_counts_the_move_the_floats_and_the_rounding():
    assert float(release_mu(S=6.0, grid=0.5, d=9, spread=5.0, honest=4, gap=1.0)) == pytest.approx(1.9)
    plain = release_mu(S=1.0, grid=1e-9, d=9, spread=WIDE)
    assert release_mu(S=1.0, grid=1e-9, d=9, spread=WIDE, honest=9) == pytest.approx(plain / 3)
    assert release_mu(S=1.0, grid=1e-9, d=9, spread=WIDE, gap=0.5) == pytest.approx(2 * plain, rel=1e-6)


@pytest.mark.parametrize("spread", [8.0, 20.0])
def test_slack_covers_the_ratio_of_discrete_and_rounded_noise(spread):
    with mpmath.workdps(40):
        s = mpmath.mpf(spread)
        norm = mpmath.nsum(lambda k: mpmath.exp(-(k**2) / (2 * s**2)), [-mpmath.inf, mpmath.inf])
        reach = int(12 * spread)
        logs = []
        for k in range(-reach, reach + 1):
            discrete = mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s**2)) / norm
            rounded = mpmath.ncdf((k + 0.5) / s) - mpmath.ncdf((k - 0.5) / s)
            logs.append(mpmath.log(discrete / rounded))
        slack = discrete_slack(spread, d=1, releases=1)
        assert max(logs) - min(logs) <= slack.epsilon
        assert max(logs) <= 1 / (24 * s**2)
        assert max(logs) - min(logs) > slack.epsilon / 5  # no idle bound: twice 13 sigma away


def test_slack_grows_with_everything_and_vanishes_on_a_fine_grid():
    base = discrete_slack(50.0, d=10, releases=3)
    assert discrete_slack(50.0, d=20, releases=3).epsilon > base.epsilon
    assert discrete_slack(50.0, d=10, releases=6).epsilon == pytest.approx(2 * base.epsilon)
    assert discrete_slack(25.0, d=10, releases=3).epsilon > 3.9 * base.epsilon
    assert discrete_slack(WIDE, d=105, releases=20).epsilon < 1e-6


def test_slack_is_added_to_epsilon_and_taken_from_delta():
    plain = float(gaussian_epsilon(1.0, 1e-5))
    shifted = float(masked_epsilon(1.0, 1e-5, Slack(0.1, 1e-30)))
    assert shifted >= float(gaussian_epsilon(1.0, 1e-5 * math.exp(-0.1))) + 0.1 > plain + 0.1
    assert float(masked_epsilon(1.0, 1e-5, Slack(0.0, 0.0))) == pytest.approx(plain, rel=1e-8)
    assert math.isinf(float(masked_epsilon(1.0, 1e-5, Slack(0.0, 1e-12))))


@pytest.mark.parametrize("k", [1.5, 2.0, 7.0])
@pytest.mark.parametrize(("spread", "d", "honest"), [(8.0, 1, 1), (8.0, 5_000, 3), (WIDE, 105, 4)])
def test_k_times_the_slack_allows_the_kth_power_of_the_failure_probability(spread, d, honest, k, monkeypatch):
    usual = discrete_slack(spread, d, releases=3, honest=honest)
    monkeypatch.setattr(masked_sums, "_FAILURE", 1e-40**k)
    rarer = discrete_slack(spread, d, releases=3, honest=honest)
    assert usual.epsilon < rarer.epsilon <= k * usual.epsilon


def test_stretch_makes_failures_negligible_at_any_epsilon():
    assert float(stretch(CALM)) == pytest.approx(1.0, rel=1e-12)
    for epsilon in (60.0, 300.0, 900.0):
        with mpmath.workdps(40):
            failure = mpmath.mpf(10) ** (-40 * float(stretch(epsilon)))
            assert mpmath.exp(epsilon) * failure <= mpmath.exp(CALM) * mpmath.mpf(10) ** -40


@pytest.mark.parametrize("epsilon", [58.0, 60.0, 100.0, 400.0])
def test_large_epsilon_of_discrete_noise_is_finite_and_hardly_above_that_of_normal_noise(epsilon):
    slack = discrete_slack(WIDE, d=105, releases=20, honest=4)
    mu = float(gaussian_mu(epsilon, 1e-5))
    found = float(masked_epsilon(mu, 1e-5, slack))
    k = 1 + max(found - 50, 0) / (40 * math.log(10))
    least = float(gaussian_epsilon(mu, 1e-5 * math.exp(-k * slack.epsilon))) + k * slack.epsilon
    assert least * (1 - 1e-12) <= found <= epsilon * (1 + 1e-5) + 2 * k * slack.epsilon


def test_noise_on_too_coarse_a_grid_is_refused():
    with pytest.raises(ParameterError, match="`spread` must be at least 8 grid units; got 2"):
        discrete_slack(2.0, d=3, releases=1)


@pytest.mark.parametrize("s", [0.5, 0.7, 1.0])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_sums_of_discrete_gaussians_are_nearly_discrete_gaussians(s, n):
    """Lemma 8 at small scales: the bound holds point by point and is close."""
    k = np.arange(-60, 61)
    one = np.exp(-(k**2) / (2 * s * s))
    one /= one.sum()
    summed = one
    for _ in range(n - 1):
        summed = np.convolve(summed, one)
    x = np.arange(len(summed)) - len(summed) // 2
    whole = np.exp(-(x**2) / (2 * n * s * s))
    whole /= whole.sum()
    near = whole > 1e-12
    worst = np.abs(np.log(summed[near] / whole[near])).max()
    bound = 10 * sum(math.exp(-2 * math.pi**2 * s * s * j / (j + 1)) for j in range(1, n))
    assert worst <= bound
    assert n > 2 or worst > 0.05 * bound  # with more of them there is less to see
