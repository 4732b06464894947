"""Totals over rounds: slightly above the sum of the rounds, never below."""

from __future__ import annotations

import numpy as np
import pytest

from privacy.accounting.test_moment import quadrature
from support import single_releases
from taciturn.privacy.accounting import bounds, totals

ORDERS = bounds.ORDERS[::12]


def schedules(sites, rounds, seed=0, distinct=True):
    """D, alpha, x and pure of a run with growing penalty and rate, (sites, rounds)."""
    rng = np.random.default_rng(seed)
    jitter = rng.uniform(1, 2, (sites, rounds)) if distinct else np.ones((sites, rounds))
    eta = 0.4 * jitter * np.geomspace(1, 5, rounds)
    B = rng.integers(20, 400, (sites, 1))
    k, a = bounds.sample_weight(60.0, eta, 2, B), bounds.least_eigenvalue(0.01, eta, 2)
    alpha = 0.5 * np.geomspace(1, 4, rounds) * (jitter if distinct else 1.0)
    return bounds.displacement(k, 1.0), alpha, bounds.bend(k, a, 0.25), bounds.pure_logistic(k, a, alpha)


@pytest.mark.parametrize("distinct", [True, False])
def test_gaussian_total_is_the_sum_of_rounds(distinct):
    D, alpha, x, _ = schedules(4, 300, distinct=distinct)
    exact = single_releases.renyi_gaussian(ORDERS[:, None, None], D, 1 / alpha, x).sum(axis=-1).T
    total = totals.renyi_gaussian_total(ORDERS, D, 1 / alpha, x)
    assert total.shape == (4, len(ORDERS))
    assert (total >= exact).all()
    both = np.isfinite(total) & np.isfinite(exact)
    assert both.sum() >= 0.5 * np.isfinite(exact).sum()
    assert total[both] == pytest.approx(exact[both], rel=2e-2)
    for delta in (1e-3, 1e-6):
        a, b = (bounds.to_epsilon(ORDERS, cost, delta)[0] for cost in (total, exact))
        assert a == pytest.approx(b, rel=1e-3)


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("d", [2, 40])
def test_norm_total_is_the_sum_of_rounds(d, distinct):
    D, alpha, x, pure = schedules(3, 250, distinct=distinct)
    exact = single_releases.renyi_norm(ORDERS[:, None, None], D, alpha, d, x, pure).sum(axis=-1).T
    total = totals.renyi_norm_total(ORDERS, D, alpha, d, x, pure)
    assert (total >= exact * (1 - 1e-12)).all()
    assert total == pytest.approx(exact, rel=0.05)
    for delta in (1e-3, 1e-6):
        a, b = (bounds.to_epsilon(ORDERS, cost, delta)[0] for cost in (total, exact))
        assert a == pytest.approx(b, rel=1e-3)


@pytest.mark.parametrize("least", [1e-2, 1e-12, 1e-300])
def test_chords_of_the_pure_bound_stay_above_it_up_to_the_last_node(least):
    spread, top = np.append(np.geomspace(least, 0.5, 999), 1.0), np.linspace(0.99, 0.998, 5)
    pure = np.concatenate([spread, *(np.full(5000, value) for value in top)])
    total = totals.renyi_norm_total(ORDERS, 1e9, 1.0, 5, 1e9, pure)
    exact = np.array([bounds.pure_renyi(q, pure).sum() for q in ORDERS])
    assert (total >= exact * (1 - 1e-12)).all()


def test_equal_rounds_cost_n_times_one_and_order_does_not_matter():
    D, alpha, x, pure = (part[0] for part in schedules(1, 40))
    one = single_releases.renyi_norm(ORDERS, D[0], alpha[0], 9, x[0], pure[0])
    many = totals.renyi_norm_total(ORDERS, np.full(17, D[0]), alpha[0], 9, x[0], pure[0])
    assert many == pytest.approx(17 * one, rel=1e-12)
    one = single_releases.renyi_gaussian(ORDERS, D[0], 1.0, x[0])
    many = totals.renyi_gaussian_total(ORDERS, np.full(17, D[0]), 1.0, x[0])
    assert many == pytest.approx(17 * one, rel=1e-12)
    forth = totals.renyi_norm_total(ORDERS, D, alpha, 9, x, pure)
    back = totals.renyi_norm_total(ORDERS, D[::-1], alpha[::-1], 9, x[::-1], pure[::-1])
    assert forth == pytest.approx(back, rel=1e-12)


def test_strongly_curved_round_makes_gaussian_orders_infinite_only_for_its_site():
    x = np.array([[0.1, 0.1], [0.1, 2.0]])
    total = totals.renyi_gaussian_total([1.2, 1.6, 5.0], 0.1, 1.0, x)
    assert np.isfinite(total).tolist() == [[True, True, True], [True, False, False]]


def test_primal_and_output_noise_have_no_bend():
    S, alpha = np.array([0.1, 0.2, 0.3]), np.array([1.0, 1.5, 2.0])
    total = totals.renyi_norm_total(ORDERS, S, alpha, 6, 0.0, bounds.primal_pure(S, alpha))
    exact = single_releases.primal_renyi_norm(ORDERS[:, None], S, alpha, 6).sum(axis=1)
    assert total == pytest.approx(exact, rel=1e-2)
    silent = totals.renyi_norm_total(ORDERS, np.array([0.0, 0.0]), 1.0, 6, 0.0, 0.0)
    assert (silent == 0).all()
    zeros = np.where(np.arange(900) % 2, np.geomspace(0.01, 1, 900), 0.0)
    mixed = totals.renyi_norm_total(ORDERS, zeros, 1.0, 6, 0.0, zeros)
    exact = single_releases.primal_renyi_norm(ORDERS[:, None], zeros[1::2], 1.0, 6).sum(axis=1)
    assert (mixed >= exact).all() and mixed == pytest.approx(exact, rel=0.05)


def test_one_round_as_plain_numbers_and_no_round_at_all():
    assert totals.renyi_gaussian_total(ORDERS, 0.1, 1.0, 0.0) == pytest.approx(ORDERS * 0.005)
    one = totals.renyi_norm_total(ORDERS, 0.1, 2.0, 5, 0.01, 0.25)
    assert one == pytest.approx(single_releases.renyi_norm(ORDERS, 0.1, 2.0, 5, 0.01, 0.25), rel=1e-12)
    none = np.zeros((3, 0))
    assert (totals.renyi_gaussian_total(ORDERS, none, 1.0, none) == np.zeros((3, len(ORDERS)))).all()
    assert (totals.renyi_norm_total(ORDERS, none, 1.0, 5, none, none) == np.zeros((3, len(ORDERS)))).all()


def test_a_thousand_sites_and_rounds_fit_in_memory():
    D, alpha, x, pure = schedules(1000, 100)
    total = totals.renyi_gaussian_total(bounds.ORDERS, D, 1 / alpha, x)
    assert total.shape == (1000, len(bounds.ORDERS))
    assert (totals.renyi_norm_total(ORDERS, D, alpha, 20, x, pure)[:, 0] > 0).all()


@pytest.mark.parametrize("q", [1.5, 4.0, 10.0])
def test_chords_of_norm_noise_stay_above_it_across_the_peak(q):
    """With widely spaced nodes, the left node of the band between two peaks must count 2 R."""
    d, top = 20, 12.0 / (q - 1)
    near = top * np.linspace(0.7, 0.98, 5)
    u = np.concatenate([np.geomspace(1e-300, top / 2, 999), [top], np.repeat(near, 5000)])
    total = totals.renyi_norm_total([q], u, 1.0, d, 0.0, 1e9)[0]
    assert total >= sum(5000 * quadrature(q, value, d) for value in near) / (q - 1)
