"""Bounds are never below the truth over all admitted facts: against exact rationals and 50 digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.privacy.accounting import bounds
from taciturn.privacy.costs import Releases, paper_costs, pure_costs, renyi_totals
from taciturn.privacy.facts import Charge, RunFacts, SiteFacts
from taciturn.privacy.loss_facts import LossFacts

SIZE = st.floats(-100, 100).map(lambda e: min(max(10.0**e, 1e-100), 1e100))
COUNT = st.integers(1, 10**9)
TINY = Fraction(1, 10**290)  # what underflows to nothing is less than this


def facts(noise, C, rho, method="penalty"):
    return RunFacts(
        method,
        noise,
        LossFacts("custom", 1.0, 0.25),
        sites=10**9 + 1,
        rounds=1,
        dimension=7,
        C=C,
        regularization=rho,
    )


def cost(run, B, V, eta, scale):
    return Releases.single(run, SiteFacts(0, B, V, (1.0,)), Charge(0, 1, eta, scale))


def exact(run, B, V, eta):
    """k, a and x as rationals."""
    k = Fraction(run.C) / (2 * Fraction(eta) * V * B)
    a = 1 + Fraction(run.regularization) / run.sites / (2 * Fraction(eta) * V)
    return k, a, k / 4 / a


@settings(max_examples=150, deadline=None, derandomize=True)
@given(C=SIZE, rho=SIZE, B=COUNT, V=COUNT, eta=SIZE, alpha=SIZE)
def test_pure_and_paper_bounds(C, rho, B, V, eta, alpha):
    """2 k alpha + ln(1 + x), and C (1.4 c1 + alpha) / (eta V B)."""
    run = facts("norm", C, rho)
    releases = cost(run, B, V, eta, alpha)
    k, _, x = exact(run, B, V, eta)
    with np.errstate(over="ignore", invalid="ignore"):
        pure, paper = (float(f(run, releases)[0, 0]) for f in (pure_costs, paper_costs))
    mpmath.mp.dps = 50
    log = mpmath.log1p(mpmath.mpf(x.numerator) / x.denominator)
    linear = 2 * k * Fraction(alpha)
    truth = mpmath.mpf(linear.numerator) / linear.denominator + log
    assert mpmath.mpf(pure) >= truth - mpmath.mpf("1e-290")
    if truth > mpmath.mpf("1e-280") and truth < mpmath.mpf("1e300"):
        assert mpmath.mpf(pure) <= truth * (1 + mpmath.mpf("1e-9"))
    theirs = Fraction(C) * (Fraction(14, 10) * Fraction(1, 4) + Fraction(alpha)) / (Fraction(eta) * V * B)
    assert not np.isfinite(paper) or Fraction(paper) >= theirs - TINY


@settings(max_examples=150, deadline=None, derandomize=True)
@given(C=SIZE, rho=SIZE, B=COUNT, V=COUNT, eta=SIZE, sigma=SIZE)
def test_renyi_of_gaussian_noise(C, rho, B, V, eta, sigma):
    """q S^2 / (2 sigma^2), S = D/a, for primal noise: exact at every order."""
    run = facts("gaussian", C, rho, "primal")
    with np.errstate(over="ignore", invalid="ignore"):  # as a certificate does: beyond the floats is no bound
        total = renyi_totals(run, cost(run, B, V, eta, sigma), bounds.ORDERS)[0]
    k, a, _ = exact(run, B, V, eta)
    ratio = (2 * k / a / Fraction(sigma)) ** 2 / 2
    for order, value in zip(bounds.ORDERS[::105].tolist(), total[::105].tolist(), strict=True):
        assert not np.isfinite(value) or Fraction(value) >= Fraction(order) * ratio - TINY
