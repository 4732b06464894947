"""The fit without noise, which other fits are compared with, is the maximum-likelihood estimate."""

import numpy as np
import pytest

import taciturn as tt

sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng, np.column_stack([rng.uniform(0, 2, n), rng.uniform(-1, 1, n)])


def fitted(family, X, y, **settings):
    return tt.PrivateGLM(family, epsilon=float("inf"), bounds=[(0, 2), (-1, 1)], **settings).fit(X, y)


def test_gaussian_estimates_and_standard_errors_are_those_of_least_squares():
    rng, X = rows(n=30)
    y = X @ [1.0, -2.0] + rng.normal(size=len(X))
    found, truth = fitted("gaussian", X, y, outcome=(-9, 9)), sm.OLS(y, sm.add_constant(X)).fit()
    np.testing.assert_allclose([found.intercept_, *found.coef_], truth.params, rtol=1e-9)
    np.testing.assert_allclose(found.se_, truth.bse[1:], rtol=1e-9)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_estimates_are_those_of_statsmodels(family):
    rng, X = rows()
    eta = X @ [1.0, -0.5] - 0.5
    y = rng.random(len(X)) < 1 / (1 + np.exp(-eta)) if family == "binomial" else rng.poisson(np.exp(eta))
    settings = {"outcome": (0, 50)} if family == "poisson" else {}
    kind = sm.families.Binomial() if family == "binomial" else sm.families.Poisson()
    truth = sm.GLM(y.astype(float), sm.add_constant(X), family=kind).fit(tol=1e-13)
    found = fitted(family, X, y, **settings)
    np.testing.assert_allclose([found.intercept_, *found.coef_], truth.params, rtol=1e-7)
    np.testing.assert_allclose(found.se_, truth.bse[1:], rtol=1e-6)


def test_a_coefficient_that_stays_at_zero_does_not_end_the_fit():
    x = np.repeat([0.0, 2.0, 0.0, 2.0], 25)
    X = np.column_stack([x, np.tile([-1.0, 1.0], 50)])
    y = np.concatenate([np.zeros(20), np.ones(5), np.zeros(5), np.ones(20)] * 2)
    y, X = np.concatenate([y, y]), np.concatenate([X, X * [1, -1]])  # the second column says nothing
    found = fitted("binomial", X, y)
    assert found.coef_[0] == pytest.approx(np.log(4), rel=1e-9)
    assert found.coef_[1] == pytest.approx(0, abs=1e-9)


def test_a_hazard_is_a_logistic_regression_of_periods_at_risk():
    rng, X = rows(n=400)
    chance = 1 / (1 + np.exp(-(X @ [0.8, -0.6] - 1.5)))
    last = np.minimum(rng.geometric(chance), 3)
    event = (rng.random(len(X)) < 0.7).astype(float)
    found = fitted("hazard", X, np.column_stack([last - 0.5, event]), periods=[1, 2, 3])
    who = np.repeat(np.arange(len(X)), last)
    period = np.concatenate([np.arange(k) for k in last])
    y = np.where(period == last[who] - 1, event[who], 0.0)
    truth = sm.GLM(y, np.column_stack([X[who], np.eye(3)[period]]), family=sm.families.Binomial()).fit(
        tol=1e-13
    )
    np.testing.assert_allclose([*found.coef_, *found.intercept_], truth.params, rtol=1e-7)


def test_as_many_coefficients_as_rows_are_refused():
    _, X = rows(3)
    with pytest.raises(tt.errors.DataError, match="more complete rows than the 3 coefficients"):
        fitted("gaussian", X, X[:, 0], outcome=(0, 2))
