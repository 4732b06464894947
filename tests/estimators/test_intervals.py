"""Intervals of coefficients: they hold the truth as often as they say, and not without the noise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit

import taciturn as tt
from taciturn.errors import ClippedRowsWarning, DataError, ParameterError
from taciturn.estimators import coef_intervals

TRUTH = np.array([3.0, -2.0, 0.0])


def rows(seed: int, count: int = 1200):
    made = np.random.default_rng(seed)
    X = made.uniform(-0.57, 0.57, (count, 3))
    return X, np.where(made.random(count) < expit(X @ TRUTH), "yes", "no")


def fitted(seed: int, **options):
    X, y = rows(seed)
    given = {
        "epsilon": 1.0,
        "sites": 3,
        "colluding": 1,
        "rounds": 8,
        "classes": ["no", "yes"],
        "effort": "quick",
    }
    return tt.PrivateLogisticRegression(random_state=seed, **given).fit(X, y)


@pytest.fixture(scope="module")
def found():
    """Ten studies, each with its own rows and noise: what they found, and their intervals at 90 %."""
    public, _ = rows(999)
    models = [fitted(seed) for seed in range(10)]
    return models, [coef_intervals(model, public, level=0.9, repeats=30, seed=7) for model in models]


def test_intervals_hold_the_truth_about_as_often_as_they_say(found):
    _, intervals = found
    held = [np.mean((one.low[0] <= TRUTH) & (TRUTH <= one.high[0])) for one in intervals]
    assert np.mean(held) >= 0.75, "30 checks at 90 %"
    assert repr(intervals[0]) == "CoefIntervals(1 x 3, level=0.9, repeats=30)"


def test_without_the_noise_they_would_be_too_narrow(found):
    """The spread of fits without privacy alone: less than what the intervals of a private fit allow for."""
    _, intervals = found
    bare = tt.PrivateLogisticRegression(epsilon=float("inf"), sites=3, rounds=40, classes=["no", "yes"])
    spread = np.std([bare.fit(*rows(100 + seed)).coef_[0] for seed in range(8)], axis=0)
    width = np.mean([one.high - one.low for one in intervals])
    assert 2 * 1.645 * np.mean(spread) < 0.8 * width


def test_penalty_method_and_several_classes():
    X, _ = rows(3, 600)
    y = np.digitize(X[:, 0], [-0.2, 0.2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClippedRowsWarning)
        model = tt.PrivateLogisticRegression(sites=3, max_rounds=2, effort="quick", random_state=0).fit(X, y)
        one = coef_intervals(model, X, repeats=20)
    assert one.low.shape == (3, 3) and (one.low < one.high).all() and one.intercept_low.shape == (3,)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ParameterError, match="must be a PrivateLogisticRegression; got PrivateLinearSVC"):
        coef_intervals(tt.PrivateLinearSVC(), [[0.0]])
    model = fitted(0)
    with pytest.raises(DataError, match="`public` must be finite rows of 3 features"):
        coef_intervals(model, [[0.0]])
    X, y = rows(0)
    whole = tt.PrivateLogisticRegression(random_state=0, effort="quick", max_rounds=2, sites=3)
    with pytest.raises(ParameterError, match="must be fitted for records"):
        coef_intervals(whole.fit(X, y, person=np.arange(1200) // 2), X)
