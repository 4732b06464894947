"""The person as the unit: several rows that count as one stay within the certified bound."""

import math

import numpy as np
import pytest

from support import single_releases
from taciturn.privacy.accounting import bounds
from taciturn.privacy.accounting.bounds import jacobian_renyi
from taciturn.privacy.accounting.persons import person_excess, person_pure, spread


def jacobian_cost(q, eigenvalues):
    """What the determinants of one pair cost at order q: the exact term of Lemma 3."""
    r = q - 1
    return float(np.sum(-r * np.log1p(eigenvalues) - np.log1p(-r * eigenvalues))) / r


def pair(rng, x):
    """Eigenvalues of G H^-1 for a person's old and new rows, whose weights sum to at most 1."""
    d = int(rng.integers(1, 6))
    old, new = (_rows(rng, d, x) for _ in range(2))
    old, new = (part * rng.choice([0.0, 1.0], p=[0.2, 0.8]) for part in (old, new))
    others = _rows(rng, d, 3 * rng.random()) * (rng.random() < 0.4)
    lower = np.linalg.inv(np.linalg.cholesky(np.eye(d) + others + old))
    return np.linalg.eigvalsh(lower @ (new - old) @ lower.T)


def _rows(rng, d, x):
    count = int(rng.integers(1, d + 1))
    rows = rng.normal(size=(count, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if rng.random() < 0.4:
        rows = np.eye(d)[:count]
    weights = x * rng.dirichlet(np.full(count, 10 ** rng.uniform(-1, 2)))
    return (rows.T * weights) @ rows


def test_random_persons_stay_within_the_certified_bound():
    rng = np.random.default_rng(3)
    closest = 0.0
    for _ in range(4000):
        q = 1.05 if rng.random() < 0.3 else 1 + 10 ** rng.uniform(-2, 1.2)
        x = min(8.0 if rng.random() < 0.3 else 10 ** rng.uniform(-2, 1.2), 0.999 / (q - 1))
        bound = float(single_releases.person_jacobian_renyi(q, x))
        cost = jacobian_cost(q, pair(rng, x))
        assert cost <= bound * (1 + 1e-9) + 1e-12
        closest = max(closest, cost / bound)
    assert closest > 0.99


def test_the_record_s_bound_is_too_small_for_a_person_at_low_orders():
    """q = 1.05, x = 8: the old rows spread over four directions, the new ones in another."""
    q, x, spread_over = 1.05, 8.0, 4
    s = np.full(spread_over, x / spread_over)
    eigenvalues = np.append(-s / (1 + s), x)
    cost = jacobian_cost(q, eigenvalues)
    assert cost > float(jacobian_renyi(q, x)) * 1.01
    assert cost <= float(single_releases.person_jacobian_renyi(q, x))


def test_from_order_1_59_on_a_person_costs_what_a_record_costs():
    q = np.linspace(1.59, 40, 300)
    assert np.all(person_excess(q, 0.999999 / (q - 1)) == 0)
    assert np.all(person_excess(np.array([1.05, 1.2]), np.array([0.5, 0.5])) == 0)
    x = np.linspace(0.1, 19.9, 200)
    assert np.all(np.diff(person_excess(1.05, x)) >= 0)  # so the worst round bounds them all


@pytest.mark.parametrize(("rows", "d", "R"), [(1, 9, 1), (4, 9, 4), (20, 9, 9), (None, 9, 9)])
def test_pure_bound_of_norm_noise_spreads_over_rows_or_dimensions(rows, d, R):
    k, a, alpha = 3.0, 1.2, 0.05
    assert spread(rows, d) == R
    general = float(person_pure(lambda w: bounds.pure_norm(w, a, alpha, 1.0, 0.5), k, R))
    assert general == pytest.approx(2 * k * alpha + R * math.log1p(0.5 * k / a / R), rel=1e-9)
    if R == 1:
        assert general == pytest.approx(float(bounds.pure_norm(k, a, alpha, 1.0, 0.5)), rel=1e-9)


def test_pure_bound_of_the_logistic_loss_is_never_passed_by_a_person():
    """ln det ratio + alpha |Delta| of random persons with up to R rows, at their worst point."""
    rng, k, a, alpha, R = np.random.default_rng(8), 6.0, 1.0, 0.1, 3
    bound = float(person_pure(lambda w: bounds.pure_logistic(w, a, alpha), k, R))
    closest = 0.0
    for _ in range(4000):
        weights = rng.dirichlet(np.full(R, 10 ** rng.uniform(-1, 3)))
        p = np.clip(rng.uniform(0.3, 1.0) + 0.05 * rng.normal(size=R), 0.0, 1.0)
        rows = np.linalg.qr(rng.normal(size=(R, R)))[0]
        bent = np.eye(R) * a + (rows.T * (k * weights * p * (1 - p))) @ rows
        cost = np.linalg.slogdet(bent)[1] - R * math.log(a) + alpha * k * (weights @ p + 1.0)
        assert cost <= bound * (1 + 1e-9)
        closest = max(closest, cost / bound)
    assert closest > 0.97
    single = float(bounds.pure_logistic(k, a, alpha))
    assert closest * bound > single  # one record's bound would have been passed


def test_logistic_persons_cost_as_records_where_the_noise_is_steep():
    k, a = 0.7, 1.0
    for R in (1, 5, 50):
        found = float(person_pure(lambda w: bounds.pure_logistic(w, a, 1.0), k, R))
        assert found == pytest.approx(2 * k, rel=1e-9)
