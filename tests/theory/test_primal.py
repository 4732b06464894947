"""Primal perturbation: sensitivity of the minimiser, and why the released value must be the state."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from support.one_round import OneRound, random_pair
from taciturn.methods.admm.updates import curvature, dual_update, linear_term
from taciturn.privacy.accounting import bounds


def test_minimisers_are_at_most_s_apart_and_attain_it():
    rng = np.random.default_rng(0)
    share = []
    for _ in range(300):
        old, new = random_pair(rng)
        S = float(bounds.primal_sensitivity(old.k, old.a, old.loss.slope_bound))
        apart = np.linalg.norm(old.solve(np.zeros((1, 2))) - new.solve(np.zeros((1, 2))))
        assert apart <= S * (1 + 1e-9)
        share.append(apart / S)
    assert max(share) > 0.98


def test_an_inexact_minimiser_moves_twice_the_gap_further():
    """Each solve may end up to the gap away, in opposite directions along the line of the minimisers."""
    lean = np.array([np.cos(0.01), np.sin(0.01)])
    centre = np.array([0.0, -4000.0])
    old = OneRound(tt.Logistic(), 0.7, 1.0, lean[None], np.ones(1), centre)
    new = old.with_sample(lean * [-1, 1], 1.0)
    ends = old.solve(np.zeros((1, 2))), new.solve(np.zeros((1, 2)))
    gap, away = 0.05, (ends[0] - ends[1]) / np.linalg.norm(ends[0] - ends[1])
    found = np.linalg.norm((ends[0] + gap * away) - (ends[1] - gap * away))
    assert found <= bounds.primal_sensitivity(0.7, 1.0, 1.0, gap)
    assert found == pytest.approx(float(bounds.primal_sensitivity(0.7, 1.0, 1.0, gap)), rel=1e-3)


def displacements(keep_clean, rounds=8, eta=1.0, theta=0.1, V=3):
    """How far two sites with slopes +1 and -1 are apart, in units of S, round by round.

    Both release the same values, zeros (that is what makes them comparable), and hear zeros; they differ in
    what they computed, and in what they go on with.
    """
    c = curvature(eta, V)
    sites = []
    for slope in (1.0, -1.0):
        f, lam, computed = np.zeros((1, 1)), np.zeros((1, 1)), []
        for _ in range(rounds):
            b = linear_term(f, np.zeros((1, 1)), lam, eta=eta, V=V)
            clean = (b - slope) / c
            computed.append(float(clean[0, 0]))
            f = clean if keep_clean else np.zeros((1, 1))
            lam = dual_update(lam, f, np.zeros((1, 1)), theta=theta, V=V)
        sites.append(np.array(computed))
    S = float(bounds.primal_sensitivity(sample := 1 / c, 1.0, 1.0))
    assert S == pytest.approx(2 * sample)
    return np.abs(sites[0] - sites[1]) / S


def test_going_on_from_the_clean_value_costs_nearly_twice_as_much():
    """8 rounds at eta = 10 theta, instead of 8 units: 15.4 of Gaussian cost, 11.0 of pure cost."""
    released, clean = displacements(keep_clean=False), displacements(keep_clean=True)
    assert released == pytest.approx(np.ones(8))
    assert (clean**2).sum() == pytest.approx(15.4, abs=0.05)
    assert clean.sum() == pytest.approx(11.0, abs=0.05)
