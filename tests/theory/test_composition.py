"""Rounds add up in any order, and agree with an independent accountant where there is no curvature."""

from __future__ import annotations

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant

from support import single_releases
from taciturn.privacy.accounting import bounds, totals

ORDERS = bounds.ORDERS[bounds.ORDERS > 1.02]


@pytest.mark.parametrize("rounds", [1, 7, 100])
@pytest.mark.parametrize("multiplier", [0.8, 5.0, 300.0])
def test_gaussian_rounds_agree_with_dp_accounting(rounds, multiplier):
    accountant = RdpAccountant(ORDERS.tolist())
    accountant.compose(dp_accounting.GaussianDpEvent(multiplier), rounds)
    ours = totals.renyi_gaussian_total(ORDERS, np.full(rounds, 1.0), multiplier, 0.0)
    theirs = accountant.get_epsilon(1e-5)
    assert bounds.to_epsilon(ORDERS, ours, 1e-5)[0] == pytest.approx(theirs, rel=1e-9)


def test_heterogeneous_gaussian_rounds_agree_with_dp_accounting():
    D, sigma = np.geomspace(1, 0.2, 30), np.geomspace(3, 8, 30)
    accountant = RdpAccountant(ORDERS.tolist())
    for move, spread in zip(D, sigma, strict=True):
        accountant.compose(dp_accounting.GaussianDpEvent(spread / move))
    ours, _ = bounds.to_epsilon(ORDERS, totals.renyi_gaussian_total(ORDERS, D, sigma, 0.0), 1e-6)
    assert ours == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-9)
    back, _ = bounds.to_epsilon(ORDERS, totals.renyi_gaussian_total(ORDERS, D[::-1], sigma[::-1], 0.0), 1e-6)
    assert back == pytest.approx(ours, rel=1e-12)


def test_n_equal_rounds_cost_n_times_one():
    one = single_releases.renyi_norm(ORDERS, 0.2, 3.0, 50, 0.03, 0.63)
    assert bounds.compose(np.stack([one] * 12, axis=-1)) == pytest.approx(12 * one)
    assert totals.renyi_norm_total(ORDERS, np.full(12, 0.2), 3.0, 50, 0.03, 0.63) == pytest.approx(12 * one)


def test_renyi_of_many_rounds_is_far_below_pure():
    pure = float(bounds.compose(np.full(1000, 0.05)))
    total = totals.renyi_norm_total(bounds.ORDERS, np.full(1000, 0.05), 1.0, 100, 0.0, 0.05)
    epsilon, _ = bounds.to_epsilon(bounds.ORDERS, total, 1e-5)
    assert epsilon < pure / 50
