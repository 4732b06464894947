"""The lower bound on epsilon from counts is never above the truth, and is close to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from taciturn.auditing.counting import clopper_pearson, epsilon_of_counts, mean_ratio, measure
from taciturn.core.errors import ParameterError


def test_clopper_pearson_bounds_equal_the_binomial_tails() -> None:
    hits, trials, beta = np.array([1, 7, 40, 99]), 100, 1e-3
    low, high = clopper_pearson(hits, trials, beta)
    assert stats.binom.sf(hits - 1, trials, low) == pytest.approx(beta)
    assert stats.binom.cdf(hits, trials, high) == pytest.approx(beta)
    none, every = clopper_pearson([0, trials], trials, beta)
    assert none[0] == 0.0 and every[1] == 1.0
    assert every[0] == pytest.approx(1 - beta ** (1 / trials))


def test_equal_counts_or_counts_within_delta_prove_no_leak() -> None:
    assert epsilon_of_counts(50, 50, 100, 0.0, 0.99) == 0.0
    assert epsilon_of_counts(3, 0, 1000, 0.05, 0.99) == 0.0


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_lower_bound_for_shifted_normals_is_close_to_the_true_epsilon(delta: float) -> None:
    shift, n = 1.0, 200_000
    for rng in (np.random.default_rng(), np.random.default_rng(0)):
        scores = rng.normal(shift, 1.0, n), rng.normal(0.0, 1.0, n)
        found = measure({"x": scores}, delta=delta)
        truth = math.log((stats.norm.sf(found.threshold - shift) - delta) / stats.norm.sf(found.threshold))
        truth = truth if found.side == "old" else _mirrored(found.threshold, shift, delta)
        assert 0 < found.epsilon < truth
    assert found.epsilon > max(1.4, 0.5 * truth)  # with fresh draws a far threshold is chosen now and then


def _mirrored(threshold: float, shift: float, delta: float) -> float:
    return math.log((stats.norm.cdf(threshold) - delta) / stats.norm.cdf(threshold - shift))


def test_the_better_score_and_side_are_found() -> None:
    rng = np.random.default_rng(1)
    n = 20_000
    useless = rng.normal(size=n), rng.normal(size=n)
    atom = np.where(rng.random(n) < 0.1, -1.0, 0.0), np.where(rng.random(n) < 0.7, -1.0, 0.0)
    found = measure({"useless": useless, "atom": atom}, delta=0.0)
    assert (found.score, found.side) == ("atom", "new")
    assert found.often > found.seldom
    assert found.epsilon == pytest.approx(math.log(7), abs=0.3)


def test_threshold_is_tested_on_other_runs_than_it_was_fitted_on() -> None:
    """A threshold that was fitted to noise proves nothing on other runs."""
    rng = np.random.default_rng(2)
    found = [measure({"x": tuple(rng.random((2, 60)))}, delta=0.0, confidence=0.9) for _ in range(300)]
    assert np.mean([bound.epsilon > 0 for bound in found]) <= 0.1


def test_runs_that_chose_the_event_do_not_count_it() -> None:
    """The first half of the runs shows a leak and the second half shows none: nothing is proved."""
    old, new = np.zeros(2000), np.zeros(2000)
    old[0::2] = 1.0
    found = measure({"x": (old, new)}, delta=0.0)
    assert found.epsilon == 0.0 and found.often == found.seldom
    assert measure({"x": (np.ones(2000), new)}, delta=0.0).epsilon > 4


def test_infinite_scores_are_counted_and_nan_is_refused() -> None:
    old, new = np.full(2000, np.inf), np.full(2000, -np.inf)
    assert measure({"x": (old, new)}, delta=0.0).epsilon > 4
    with pytest.raises(ParameterError, match="NaN"):
        measure({"x": (np.full(10, np.nan), np.zeros(10))}, delta=0.0)
    with pytest.raises(ParameterError, match="arrays of equal length"):
        measure({"x": (np.zeros(10), np.zeros(9))}, delta=0.0)
    with pytest.raises(ParameterError, match="delta"):
        measure({"x": (np.zeros(10), np.zeros(10))}, delta=1.0)


def test_the_mean_ratio_holds_where_the_densities_are_right() -> None:
    old, new = (np.random.default_rng().normal(mean, 1.0, 50_000) for mean in (0.0, 0.3))
    log_ratios = [stats.norm.logpdf(x, 0.3) - stats.norm.logpdf(x) for x in (old, new)]
    assert mean_ratio(*log_ratios).holds
    assert not mean_ratio(*(part + 0.1 for part in log_ratios)).holds
    bounded = [np.random.default_rng().random(20_000) < chance for chance in (0.5, 0.25)]
    right = mean_ratio(*(np.where(part, math.log(0.5), math.log(1.5)) for part in bounded), most=1.5)
    assert right.holds and right.margin < 0.05


def test_the_mean_ratio_needs_no_tail() -> None:
    """w = p_new / p_old has infinite variance on the old data; the new data show the part above the cut."""
    old, new = (np.random.default_rng().normal(0.0, scale, 50_000) for scale in (1.0, 2.0))
    log_ratios = [stats.norm.logpdf(x, 0.0, 2.0) - stats.norm.logpdf(x) for x in (old, new)]
    right = mean_ratio(*log_ratios)
    assert right.holds and right.margin < 0.1
    assert np.exp(log_ratios[1]).max() > np.sqrt(50_000) / 8
    narrow = [stats.norm.logpdf(x, 0.0, 2.0) - stats.norm.logpdf(x) for x in (0.8 * old, new)]
    assert not mean_ratio(*narrow).holds


def test_mean_ratio_of_few_runs_raises_no_false_alarm() -> None:
    """One run in a thousand carries half of the mean: few runs rarely draw it, and must not report a leak."""
    rng, chance = np.random.default_rng(3), 1e-3
    alarms = 0
    for _ in range(300):
        old, new = rng.random(1000) < chance, rng.random(1000) < 0.5
        logs = [np.where(rare, math.log(0.5 / chance), math.log(0.5 / (1 - chance))) for rare in (old, new)]
        alarms += not mean_ratio(*logs, confidence=0.99).holds
    assert alarms <= 6
