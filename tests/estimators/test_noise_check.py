"""A budget whose noise would drown the model gives a warning, from public numbers, before it is spent."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import BudgetTooSmallWarning
from taciturn.estimators.noise_check import noise_over_signal

USUAL = {"sites": 5, "colluding": 1, "epsilon": 1.0, "delta": 1e-5}


def test_warning_for_ten_rows_and_none_for_a_thousand(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (1000, 3))
    y = X[:, 0] > 0
    clf = tt.PrivateLogisticRegression(sites=2, colluding=0, rounds=5, classes=[False, True])
    with pytest.warns(
        BudgetTooSmallWarning, match=r"at this budget the noise is larger than the signal"
    ) as told:
        clf.fit(X[:10], y[:10])
    assert told[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        clf.fit(X, y)
        clf.set_params(random_state=0).fit(X[:10], y[:10])  # nothing is spent


def test_more_rows_and_trust_help_and_more_columns_hurt():
    one = noise_over_signal(500, 10, **USUAL)
    assert noise_over_signal(1000, 10, **USUAL) == pytest.approx(one / 2)
    assert noise_over_signal(500, 20, **USUAL) == pytest.approx(2 * one)
    assert noise_over_signal(500, 10, **(USUAL | {"colluding": None})) == pytest.approx(2 * one)
    assert noise_over_signal(500, 10, **(USUAL | {"epsilon": 3.0})) < one
    assert noise_over_signal(500, 10, **(USUAL | {"epsilon": float("inf")})) == 0


def test_pure_guarantee_counts_the_norm_of_its_noise():
    """With density exp(-rate ||e||), the root mean square of ||e|| is sqrt(d (d + 1)) / rate."""
    n, d = 500, 100
    rate = n * USUAL["epsilon"] / 2
    noise = np.sqrt(d * (d + 1)) / rate * np.sqrt(5 / 4)
    assert noise_over_signal(n, d, **(USUAL | {"delta": 0.0})) == pytest.approx(
        noise / np.sqrt(2 / (np.pi * d))
    )


@pytest.mark.parametrize(("n", "low", "high"), [(60, 0.4, 0.75), (6000, 0.9, 1.0)])
def test_noise_figure_above_one_means_chance_accuracy(n, low, high):
    """The figure is derived for separable rows without a preferred direction."""
    d, scores = 10, []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows, w = rng.standard_normal((n + 2000, d)), rng.standard_normal(d)
        X = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        y = X @ w > 0
        clf = tt.PrivateLogisticRegression(sites=5, colluding=1, classes=[False, True], random_state=seed)
        scores.append(clf.fit(X[:n], y[:n]).score(X[n:], y[n:]))
    assert low < np.mean(scores) < high
    assert (noise_over_signal(n, d + 1, **USUAL) > 1) == (high < 0.9)
