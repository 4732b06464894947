"""The curve of Gaussian privacy, its two inverses and its rounding."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st

from taciturn.core.errors import ParameterError
from taciturn.privacy.accounting.gaussian import compose_mu, gaussian_delta, gaussian_epsilon, gaussian_mu

MU = st.floats(1e-6, 50)
DELTA = st.floats(1e-15, 0.5)


def exact(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


def test_both_inverses_are_exact_to_the_last_bit_for_scalars_and_arrays():
    mu, delta = np.array([0.01, 0.3, 1.0, 7.0, 30.0]), 1e-5
    epsilon = gaussian_epsilon(mu, delta)
    assert epsilon.tolist() == [float(gaussian_epsilon(value, delta)) for value in mu]
    assert np.all(gaussian_delta(mu, epsilon) <= delta)
    assert np.all(gaussian_delta(mu, np.nextafter(epsilon, 0)) > delta)
    widest = gaussian_mu(mu, delta)
    assert widest.tolist() == [float(gaussian_mu(value, delta)) for value in mu]
    assert np.all(gaussian_delta(widest, mu) <= delta)
    assert np.all(gaussian_delta(np.nextafter(widest, np.inf), mu) > delta)


@given(MU, st.floats(0, 12))
def test_delta_is_never_below_the_truth_and_close_to_it(mu, spread):
    epsilon = mu * spread
    truth = exact(mu, epsilon)
    found = float(gaussian_delta(mu, epsilon))
    assert found >= truth
    assert found <= float(truth) * (1 + 1e-6) + 1e-14


@given(MU, DELTA)
def test_epsilon_keeps_its_delta_and_nothing_smaller_does(mu, delta):
    epsilon = float(gaussian_epsilon(mu, delta))
    assert exact(mu, epsilon) <= delta
    if epsilon > 0:
        assert exact(mu, epsilon * (1 - 1e-6)) > delta * (1 - 1e-5)


@given(st.floats(1e-3, 100), DELTA)
def test_mu_is_the_inverse_of_epsilon(epsilon, delta):
    mu = float(gaussian_mu(epsilon, delta))
    assert exact(mu, epsilon) <= delta
    assert exact(mu * (1 + 1e-6), epsilon) > delta * (1 - 1e-9)


@given(MU, MU, DELTA, DELTA)
def test_more_mu_or_less_delta_costs_more(mu, other, delta, level):
    low, high = sorted((mu, other))
    assert gaussian_epsilon(low, delta) <= gaussian_epsilon(high, delta) * (1 + 1e-12)
    strict, loose = sorted((delta, level))
    assert gaussian_epsilon(mu, strict) >= gaussian_epsilon(mu, loose) * (1 - 1e-12)


@pytest.mark.parametrize("multiplier", [0.7, 3.0, 40.0])
def test_rounds_agree_with_the_privacy_loss_distributions_of_dp_accounting(multiplier):
    rounds = 50
    theirs = pld.from_gaussian_mechanism(multiplier, value_discretization_interval=1e-4).self_compose(rounds)
    ours = gaussian_epsilon(compose_mu(np.full(rounds, 1 / multiplier)), 1e-6)
    assert float(ours) == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=1e-3)


def test_squares_add_up_in_any_order_and_far_from_one():
    assert float(compose_mu([3.0, 4.0])) == pytest.approx(5.0, rel=1e-12)
    assert float(compose_mu([3e-200, 4e-200])) == pytest.approx(5e-200, rel=1e-12, abs=0)
    assert float(compose_mu([3e200, 4e200])) == pytest.approx(5e200, rel=1e-12)
    assert compose_mu(np.ones((2, 9)), axis=1) == pytest.approx([3.0, 3.0])
    assert float(compose_mu([])) == 0 and compose_mu([1.0, np.inf]) == np.inf


def test_extreme_values_are_handled():
    assert gaussian_epsilon([0.0, np.inf], 1e-5).tolist() == [0.0, np.inf]
    assert gaussian_delta([0.0, np.inf], 1.0).tolist() == [0.0, 1.0]
    assert gaussian_epsilon(1e-9, 1e-5) == 0
    assert gaussian_epsilon(1e3, 1e-5) > 1e3**2 / 2
    assert gaussian_epsilon(1e200, 1e-5) == np.inf
    assert 1e154 < gaussian_mu(np.finfo(float).max, 1e-5) < 2e154
    assert gaussian_epsilon(1.0, 1e-300) == pytest.approx(1.0 * (0.5 + 37.0), rel=0.02)


def test_wrong_arguments_are_named():
    with pytest.raises(ParameterError, match="delta"):
        gaussian_epsilon(1.0, 0.0)
    with pytest.raises(ParameterError, match="`epsilon` must be at least 0; got -1"):
        gaussian_mu(-1.0, 1e-5)
