"""The Renyi bounds of one release and their conversion."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest

from support import single_releases
from taciturn.core.errors import ParameterError
from taciturn.privacy.accounting import bounds


def test_psi_against_brute_force_over_the_angle():
    rng = np.random.default_rng(0)
    cosine = np.cos(np.linspace(0, np.pi, 20_001))
    for _ in range(300):
        q, D, alpha = 1 + np.exp(rng.uniform(-3, 3)), np.exp(rng.uniform(-2, 2)), np.exp(rng.uniform(-2, 2))
        r = q - 1
        R = r * D * np.exp(rng.normal(0, 1)) if rng.random() < 0.5 else np.exp(rng.uniform(-3, 4))
        there = np.sqrt(np.maximum(R**2 + 2 * q * D * R * cosine + (q * D) ** 2, 0))
        back = np.sqrt(np.maximum(R**2 + 2 * r * D * R * cosine + (r * D) ** 2, 0))
        brute = alpha * np.max(r * there + R - q * back)
        assert single_releases.psi(R, q, D, alpha) == pytest.approx(brute, rel=1e-6, abs=1e-9)


def test_psi_has_one_peak_and_no_jump():
    q, D = 3.5, 0.8
    r = q - 1
    R = np.linspace(0, 40, 400_001)
    values = single_releases.psi(R, q, D)
    assert R[np.argmax(values)] == pytest.approx(r * D, abs=1e-4)
    assert (np.diff(values[R <= r * D]) > 0).all() and (np.diff(values[R >= r * D]) < 0).all()
    assert np.abs(np.diff(values)).max() < 2e-4 * (1 + 2 * r)
    assert single_releases.psi(r * D, q, D) == pytest.approx(2 * r * D)
    assert single_releases.psi(0.0, q, D) == 0.0


def test_a_shorter_displacement_is_never_worse():
    """The exponent grows along every ray of Delta, so ||Delta|| = D may be assumed."""
    rng = np.random.default_rng(3)
    S = rng.standard_normal((500, 3))
    Delta = rng.standard_normal((500, 3))
    q = 1 + np.exp(rng.uniform(-3, 3, (500, 1)))
    size = np.linspace(0, 3, 61)[:, None, None]

    def norm(v):
        return np.linalg.norm(v, axis=-1)

    exponent = (q[:, 0] - 1) * norm(S + q * size * Delta) - q[:, 0] * norm(S + (q - 1) * size * Delta)
    assert (np.diff(exponent, axis=0) >= -1e-9).all()


def test_jacobian_is_second_order_and_ends_at_r_x_1():
    assert bounds.jacobian_renyi(2.0, 1e-4) == pytest.approx(2 * 1e-8, rel=1e-3)
    assert bounds.jacobian_renyi(3.0, 0.0) == 0.0
    assert np.isfinite(bounds.jacobian_renyi(1.999, 1.0))
    assert np.isinf(bounds.jacobian_renyi([2.0, 2.5], 1.0)).all()
    assert np.isinf(single_releases.renyi_gaussian(2.0, 0.1, 1.0, 1.0))


def test_jacobian_is_the_product_at_both_ends():
    """1 / prod (1 + mu)^r (1 - r mu) at mu = x and mu = -x / (1 + x), the largest over the whole interval."""
    for q, x in ((1.3, 0.5), (2.0, 0.7), (6.0, 0.15)):
        r = q - 1
        mu = np.linspace(-x / (1 + x), x, 1001)
        factor = 1 / ((1 + mu) ** r * (1 - r * mu))
        assert np.argmax(factor[mu <= 0]) == 0 and np.argmax(factor) in (0, 1000)
        assert bounds.jacobian_renyi(q, x) == pytest.approx(np.log(factor[0] * factor[-1]) / r)


def test_gaussian_bound_of_each_kind_of_release():
    assert single_releases.renyi_gaussian(4.0, 0.5, 2.0, 0.0) == pytest.approx(4 * 0.25 / 8)
    assert single_releases.primal_renyi_gaussian(4.0, 0.5, 2.0) == pytest.approx(4 * 0.25 / 8)
    assert single_releases.output_renyi_gaussian(4.0, 0.25, 2.0) == pytest.approx(4 * 0.25 / 8)


def test_norm_is_never_above_what_the_pure_bound_allows():
    q = 1 + np.geomspace(1e-3, 1e5, 60)
    for u, x, d in ((0.01, 0.1, 2), (0.6, 0.02, 105), (3.0, 1.5, 10), (40.0, 0.0, 1)):
        pure = u + math.log1p(x)
        cost = single_releases.renyi_norm(q, u, 1.0, d, x, pure)
        assert (cost <= pure * (1 + 1e-12)).all()
        assert (cost <= bounds.pure_renyi(q, pure)).all()
        assert (np.diff(cost) >= -1e-4 * cost[1:]).all()
        assert cost[-1] == pytest.approx(pure, rel=1e-2)
    beyond = single_releases.renyi_norm(3.0, 0.1, 1.0, 105, 0.6, 1.0)
    assert beyond == pytest.approx(float(bounds.pure_renyi(3.0, 1.0)))


def test_primal_and_output_are_the_norm_bound_without_bend():
    q = np.array([1.5, 4.0, 30.0])
    straight = single_releases.renyi_norm(q, 0.4, 2.0, 7, 0.0, 0.8)
    assert single_releases.primal_renyi_norm(q, 0.4, 2.0, 7) == pytest.approx(straight, rel=1e-12)
    assert single_releases.output_renyi_norm(q, 0.2, 2.0, 7) == pytest.approx(straight, rel=1e-12)
    assert single_releases.output_renyi_norm(q, 0.0, 2.0, 7).tolist() == [0.0, 0.0, 0.0]


def test_pure_renyi_is_randomised_response():
    getcontext().prec = 60
    for epsilon in (1e-4, 0.3, 2.0, 20.0):
        p = 1 / (1 + (-Decimal(epsilon)).exp())
        for q in (1.001, 1.5, 4.0, 20.0):
            order = Decimal(q)
            moment = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
            exact = float(moment.ln() / (order - 1))
            assert bounds.pure_renyi(q, epsilon) >= exact
            assert bounds.pure_renyi(q, epsilon) == pytest.approx(exact, rel=1e-9)
            assert bounds.pure_renyi(q, epsilon) <= min(epsilon, q * epsilon**2 / 2) * (1 + 1e-12)
    assert bounds.pure_renyi(1e5, 800.0) <= 800.0 * (1 + 1e-12)


# -- (epsilon, delta) -------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
def test_the_grid_of_orders_suits_small_and_large_budgets(target, delta):
    """Gaussian rounds worth about `target`: the grid loses less than 0.1% against a fine search."""
    log = math.log(1 / delta)
    rho = (math.sqrt(log + target) - math.sqrt(log)) ** 2
    fine = 1 + np.geomspace(1e-4, 1e7, 200_001)
    best, _ = bounds.to_epsilon(fine, rho * fine, delta)
    epsilon, order = bounds.to_epsilon(bounds.ORDERS, rho * bounds.ORDERS, delta)
    assert best <= epsilon <= best * 1.001
    assert bounds.ORDERS[0] < order < bounds.ORDERS[-1]


def test_conversion_formula_and_shapes():
    rdp = np.array([[0.1, 0.2, 0.3], [np.inf, 0.5, np.inf], [np.inf, np.inf, np.inf]])
    q = np.array([2.0, 5.0, 20.0])
    epsilon, order = bounds.to_epsilon(q, rdp, 1e-5)
    by_hand = min(
        c + math.log(1 - 1 / o) - math.log(1e-5 * o) / (o - 1) for c, o in zip(rdp[0], q, strict=True)
    )
    assert epsilon[0] == pytest.approx(by_hand) and order[0] == 20.0
    assert order[1] == 5.0 and np.isinf(epsilon[2]) and np.isnan(order[2])
    assert bounds.to_epsilon([2.0], [0.0], 0.9)[0] == 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(ParameterError, match="`delta`"):
        bounds.to_epsilon([2.0], [0.1], delta)


def test_orders_must_exceed_one():
    with pytest.raises(ParameterError, match="`q` must be above 1; got 1"):
        bounds.jacobian_renyi([2.0, 1.0], 0.1)
    with pytest.raises(ParameterError, match="`d` must be at least 1"):
        single_releases.renyi_norm(2.0, 0.1, 1.0, 0, 0.0, 1.0)
