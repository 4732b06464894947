"""The pure bounds: known numbers, exact maxima, and rounding that never goes below the truth."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from support import single_releases
from taciturn.core.errors import ParameterError
from taciturn.privacy.accounting import bounds, totals

getcontext().prec = 60

PAPER = {"C": 1750.0, "eta": 0.5, "V": 2.0, "B": 9044.0}
ROUNDS = 100


@pytest.fixture(scope="module")
def paper_run():
    """The run that every page quotes: C=1750, B=9044, V=2, eta=0.5, alpha=3, d=105, T=100, rho -> 0."""
    k = bounds.sample_weight(**PAPER)
    a = bounds.least_eigenvalue(0.0, PAPER["eta"], PAPER["V"])
    return k, a, bounds.displacement(k, 1.0), bounds.bend(k, a, 0.25)


def rounds(value):
    return np.full(ROUNDS, value)


def test_the_four_numbers(paper_run):
    k, a, D, x = paper_run
    paper = bounds.compose(rounds(bounds.paper_epsilon(**PAPER, c1=0.25, alpha=3.0)))
    pure = bounds.pure_logistic(k, a, 3.0)
    norm = totals.renyi_norm_total(bounds.ORDERS, rounds(D), 3.0, 105, x, pure)
    gaussian = totals.renyi_gaussian_total(bounds.ORDERS, rounds(D), math.sqrt(105) / 3, x)
    assert f"{paper:.2f}" == "64.82"
    assert f"{bounds.compose(rounds(pure)):.2f}" == "58.05"
    assert f"{bounds.to_epsilon(bounds.ORDERS, norm, 1e-5)[0]:.3f}" == "2.969"
    assert f"{bounds.to_epsilon(bounds.ORDERS, gaussian, 1e-5)[0]:.3f}" == "2.956"


def test_symbols():
    assert bounds.sample_weight(**PAPER) == pytest.approx(1750 / (2 * 0.5 * 2 * 9044))
    assert bounds.least_eigenvalue(0.01, 0.5, 2) == pytest.approx(1.005)
    assert bounds.displacement(0.3, 1.0, X=2.0) == pytest.approx(1.2)
    assert bounds.bend(0.3, 1.5, 0.25, X=2.0) == pytest.approx(0.2)


@pytest.mark.parametrize("seed", range(5))
def test_rounded_to_the_safe_side(seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        C, eta, V, B, strong, alpha, c1, gap = np.exp(rng.uniform(-9, 9, 8)).tolist()
        exact_k = Fraction(C) / (2 * Fraction(eta) * Fraction(V) * Fraction(B))
        exact_a = 1 + Fraction(strong) / (2 * Fraction(eta) * Fraction(V))
        k, a = bounds.sample_weight(C, eta, V, B), bounds.least_eigenvalue(strong, eta, V)
        assert exact_k <= Fraction(float(k)) <= exact_k * (1 + Fraction(1, 10**12))
        assert exact_a * (1 - Fraction(1, 10**12)) <= Fraction(float(a)) <= exact_a
        assert Fraction(float(bounds.displacement(k, 1.0))) >= 2 * exact_k
        assert Fraction(float(bounds.bend(k, a, c1))) >= Fraction(c1) * exact_k / exact_a
        S = bounds.primal_sensitivity(k, a, 1.0, gap)
        assert Fraction(float(S)) >= 2 * exact_k / exact_a + 2 * Fraction(gap)
        assert Fraction(float(bounds.primal_pure(S, alpha))) >= Fraction(alpha) * Fraction(float(S))
        assert Fraction(float(single_releases.output_pure(gap, alpha))) >= 2 * Fraction(gap) * Fraction(alpha)
        exact = Fraction(C) * (Fraction(14, 10) * Fraction(c1) + Fraction(alpha))
        exact /= Fraction(eta) * Fraction(V) * Fraction(B)
        assert Fraction(float(bounds.paper_epsilon(C, eta, V, B, c1, alpha))) >= exact


@pytest.mark.parametrize("seed", range(3))
def test_pure_bounds_are_never_below_the_truth_in_floats(seed):
    """Against 60 digits, the maximum over p taken at the same stationary point."""
    rng = np.random.default_rng(seed)
    one = Decimal(1)
    for _ in range(60):
        k, alpha, c1, over = np.exp(rng.uniform(-6, 4, 4)).tolist()
        a = 1 + over
        A, w = Decimal(k) * Decimal(alpha), Decimal(k) / Decimal(a)
        exact = 2 * A + (one + Decimal(c1) * w).ln()
        assert (
            exact <= Decimal(float(bounds.pure_norm(k, a, alpha, 1.0, c1))) <= exact * (1 + Decimal("1e-12"))
        )
        b = A + 4 * A / w
        p = min(one / 2 + b / (2 * (2 + (4 + A * b).sqrt())), one)
        exact = A + A * p + (one + w * p * (1 - p)).ln()
        assert exact <= Decimal(float(bounds.pure_logistic(k, a, alpha))) <= exact * (1 + Decimal("1e-12"))
        w = w * Decimal(c1)
        b = A + A / w
        p = min(b / (1 + (1 + A * b).sqrt()), one)
        exact = A + A * p + (one + w * (1 - p * p)).ln()
        assert (
            exact <= Decimal(float(bounds.pure_log_cosh(k, a, alpha, c1))) <= exact * (1 + Decimal("1e-12"))
        )


def test_maxima_over_p_against_a_search():
    rng = np.random.default_rng(0)
    p = np.linspace(0, 1, 200_001)
    for _ in range(40):
        k, alpha, c1, over, X = np.exp(rng.uniform(-4, 3, 5))
        a = 1 + over
        A, w = k * alpha * X, k * X**2 / a
        logistic = A + np.max(A * p + np.log1p(w * p * (1 - p)))
        log_cosh = A + np.max(A * p + np.log1p(w * c1 * (1 - p**2)))
        assert bounds.pure_logistic(k, a, alpha, X) == pytest.approx(logistic, rel=1e-8)
        assert bounds.pure_log_cosh(k, a, alpha, c1, X) == pytest.approx(log_cosh, rel=1e-8)
        assert bounds.pure_logistic(k, a, alpha, X) <= bounds.pure_norm(k, a, alpha, 1.0, 0.25, X) * (
            1 + 1e-9
        )


@pytest.mark.parametrize("a", [1.0, 2.5])
def test_logistic_needs_no_jacobian_exactly_from_alpha_1_over_a(a):
    for k in (0.05, 3.0):
        flat = 2 * k / a
        assert bounds.pure_logistic(k, a, 1 / a) == pytest.approx(flat, rel=1e-12)
        assert bounds.pure_logistic(k, a, 0.9 / a) > 0.9 * flat * (1 + 1e-6)
        assert bounds.pure_log_cosh(k, a, 2 * 0.7 / a, 0.7) == pytest.approx(0.7 * 2 * flat, rel=1e-12)
        assert bounds.pure_log_cosh(k, a, 1.8 * 0.7 / a, 0.7) > 0.63 * 2 * flat * (1 + 1e-6)


def test_logistic_maximum_below_1_over_a():
    assert bounds.pure_logistic(3.0, 1.0, 0.2) == pytest.approx(1 + math.log(5 / 3), rel=1e-12)


def test_paper_condition_is_strict():
    assert bounds.paper_condition(**{key: PAPER[key] for key in "CBV"}, strong=0.0, theta=0.5, c1=0.25)
    assert not bounds.paper_condition(C=1.0, B=1.0, V=1.0, strong=0.0, theta=0.25, c1=0.25)
    assert bounds.paper_condition(C=1.0, B=1.0, V=1.0, strong=0.001, theta=0.25, c1=0.25)
    table = bounds.paper_condition(1750, np.array([[9044.0], [100.0]]), 2, 0, np.array([0.5, 0.01]), 0.25)
    assert table.tolist() == [[True, False], [False, False]]


def test_paper_bound_is_above_the_tight_one_where_its_condition_holds():
    rng = np.random.default_rng(1)
    C, B, V = 1.0, np.exp(rng.uniform(0, 7, 2000)), rng.integers(1, 9, 2000)
    eta, alpha, strong = np.exp(rng.uniform(-4, 3, (3, 2000)))
    k, a = bounds.sample_weight(C, eta, V, B), bounds.least_eigenvalue(strong, eta, V)
    holds = bounds.paper_condition(C, B, V, strong, eta, 0.25)
    assert 100 < holds.sum() < 2000
    tight, paper = bounds.pure_norm(k, a, alpha, 1.0, 0.25), bounds.paper_epsilon(C, eta, V, B, 0.25, alpha)
    assert (tight[holds] <= paper[holds]).all()


def test_primal_sensitivity_is_the_gradient_gap_over_m():
    C, eta, V, B, strong, g = 20.0, 0.4, 3.0, 50.0, 0.2, 1e-3
    m = strong + 2 * eta * V
    k, a = bounds.sample_weight(C, eta, V, B), bounds.least_eigenvalue(strong, eta, V)
    assert bounds.primal_sensitivity(k, a, 1.0, g / m) == pytest.approx((2 * C / B + 2 * g) / m)


def test_one_vs_rest():
    assert bounds.one_vs_rest(0.7, 5) == pytest.approx(3.5)
    with pytest.raises(ParameterError, match="`K` must be at least 1; got 0"):
        bounds.one_vs_rest(1.0, 0)


def test_composition_is_the_sum_in_any_order():
    costs = np.random.default_rng(2).exponential(size=(4, 7))
    assert bounds.compose(costs) == pytest.approx(costs.sum(axis=1))
    assert bounds.compose(costs[:, ::-1]) == pytest.approx(bounds.compose(costs), rel=1e-14)
    assert bounds.compose(np.full(50, 0.3)) == pytest.approx(15.0)


def test_everything_broadcasts_over_sites_and_rounds():
    eta, V, B = np.geomspace(0.5, 2, 6), np.array([[1.0], [2.0], [3.0]]), np.array([[50.0], [60.0], [70.0]])
    k, a = bounds.sample_weight(10.0, eta, V, B), bounds.least_eigenvalue(0.1, eta, V)
    assert k.shape == a.shape == (3, 6)
    for cost in (
        bounds.paper_epsilon(10.0, eta, V, B, 0.25, 3.0),
        bounds.pure_norm(k, a, 3.0, 1.0, 0.25),
        bounds.pure_logistic(k, a, 3.0),
        bounds.pure_log_cosh(k, a, 3.0, 0.5),
        bounds.primal_sensitivity(k, a, 1.0),
    ):
        assert cost.shape == (3, 6)
        assert (np.diff(cost, axis=1) < 0).all()
