"""PrivateHuberRegressor: fits a line within the budget, for any y."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.core.errors import ParameterError
from taciturn.estimators import PrivateHuberRegressor


@pytest.fixture(scope="module")
def line():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 3)) / 2
    return X, 1000.0 * (X @ [2.0, -1.0, 0.5] + 1.0 + 0.1 * rng.standard_normal(4000))


def test_a_line_is_found_within_the_budget(line, quick):
    X, y = line
    model = PrivateHuberRegressor(epsilon=2.0, target_scale=1000.0, **quick).fit(X, y)
    assert model.score(X, y) > 0.5 and model.certificate_.epsilon <= 2.0
    assert model.coef_.shape == (3,) and isinstance(model.intercept_, float)
    assert model.site_coef_.shape == (5, 1, 3)
    assert model.site_coef_[:, 0].mean(axis=0) == pytest.approx(model.coef_)


def test_an_outlier_moves_the_fit_no_further_than_any_other_row(line, quick):
    X, y = line
    fits = []
    for far in (1e4, 1e308):
        wild = y.copy()
        wild[0] = far
        fits.append(PrivateHuberRegressor(target_scale=1000.0, random_state=0, **quick).fit(X, wild).coef_)
    assert fits[0] == pytest.approx(fits[1], rel=1e-3)


def test_the_scales_must_be_positive(line):
    for options in ({"target_scale": 0.0}, {"scale": -1.0}):
        with pytest.raises(ParameterError, match=f"`{next(iter(options))}` must"):
            PrivateHuberRegressor(**options).fit(*line)


def test_without_privacy_it_agrees_with_least_squares(line):
    X, y = line
    model = PrivateHuberRegressor(epsilon=float("inf"), target_scale=1000.0).fit(X, y)
    squares = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
    assert model.coef_ == pytest.approx(squares[:3], abs=30) and model.intercept_ == pytest.approx(
        squares[3], abs=30
    )


def test_a_target_that_is_a_text_is_refused_and_not_quoted():
    """NumPy's error would quote the first value."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (20, 2))
    for y in (np.array(["canary-7351"] * 20), np.array(["canary-7351"] * 20, dtype=object)):
        with pytest.raises(ValueError, match="must contain numbers") as caught:
            PrivateHuberRegressor(sites=2, random_state=0).fit(X, y)
        trail = [caught.value, caught.value.__cause__]
        assert not any("canary" in repr(error) for error in trail)
