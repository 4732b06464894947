"""The certified moment: above a fine quadrature, and not far above."""

from __future__ import annotations

import itertools
from decimal import Decimal, getcontext

import numpy as np
import pytest
from scipy import special

from support.single_releases import psi
from taciturn.privacy.accounting import moment
from taciturn.privacy.accounting.moment import log_moment


def quadrature(q, u, d):
    """ln E exp psi(R) by Gauss-Legendre on cells that end at both kinks of psi."""
    r = q - 1
    low, high = max(special.gammaincinv(d, 1e-280), 1e-14 * d), special.gammainccinv(d, 1e-40)
    edges = np.concatenate([[0.0], np.geomspace(low, high, 300), r * u * (1 + np.geomspace(1e-6, 1, 30))])
    edges = np.unique(np.append(edges, [r * u, (r + 0.5) * u]))
    edges = edges[edges <= high]
    x, w = np.polynomial.legendre.leggauss(30)
    half = np.diff(edges)[:, None] / 2
    R = edges[:-1, None] + half * (1 + x)
    rise, log_weight = psi(R, q, u), (d - 1) * np.log(R) - R - special.gammaln(d)
    small = np.expm1(np.minimum(rise, 1.0)) * np.exp(log_weight)
    large = np.exp(np.minimum(log_weight + rise, 700)) - np.exp(log_weight)
    return np.log1p((half * w * np.where(rise < 1, small, large)).sum())


@pytest.mark.parametrize("d", [1, 2, 3, 8, 30, 105, 400])
def test_moment_bound_is_above_the_quadrature_and_close(d):
    excess = []
    for q in (1.02, 1.3, 2.0, 5.0, 20.0, 400.0):
        for share in (1e-3, 0.02, 0.1, 0.2, 0.27, 0.32):
            u = share * d / (q - 1)
            if u < 30:
                exact, bound = quadrature(q, u, d), float(log_moment(q, u, d))
                assert bound >= exact
                if exact < 1:
                    excess.append(bound / exact - 1)
    assert max(excess) < 0.01
    assert np.median(excess) < 2e-3


def test_known_closed_form_in_one_dimension():
    """d = 1, order 2: the three pieces integrate to exponentials and one smooth rest."""
    u = 0.5
    near = np.expm1(u)  # int_0^{ru} e^{2R} e^{-R}
    R = np.linspace(u, 60, 2_000_001)
    values = np.exp(psi(R, 2.0, u) - R)
    rest = np.sum((values[1:] + values[:-1]) / 2) * (R[1] - R[0])
    assert log_moment(2.0, u, 1) == pytest.approx(np.log(near + rest), rel=3e-3)


@pytest.mark.parametrize("d", [1, 2, 5, 105])
def test_chords_in_u_stay_above(d):
    """(1-s) log_moment(u, beyond=u') + s log_moment(u') >= log_moment in between, including the peak band."""
    for q in (1.1, 2.0, 6.0, 50.0):
        for share in (0.01, 0.1, 0.25, 0.6):
            u = share * d / (q - 1)
            for step in (1.015, 1.3):
                s = np.linspace(0.05, 0.95, 7)
                left, right = log_moment(q, u, d, beyond=step * u), log_moment(q, step * u, d)
                chord = (1 - s) * left + s * right
                exact = [quadrature(q, (1 - t) * u + t * step * u, d) for t in s]
                assert (chord >= exact).all()


def test_monotone_in_u_and_zero_at_zero():
    u = np.concatenate([[0.0], np.geomspace(1e-6, 3, 60)])
    values = log_moment(4.0, u, 20)
    assert values[0] == 0.0
    assert (np.diff(values) > 0).all()


def test_many_dimensions_and_extreme_orders():
    assert log_moment(5.0, 2.0, 100_000) == pytest.approx(5 * 4 * 4 / (2 * 100_000), rel=1e-2)
    assert np.isinf(log_moment(1e4, 5.0, 10))
    assert np.isfinite(log_moment(50.0, 8.0, 10_000))
    assert log_moment(np.array([[2.0], [3.0]]), np.array([0.1, 0.2, 0.3]), 10).shape == (2, 3)


def test_incomplete_gamma_is_as_good_as_the_slack_assumes():
    """scipy's gammainc against 300 digits of the Poisson sum, for whole d: far better than 1e-8."""
    getcontext().prec = 300
    for d in (1, 3, 105, 700):
        for share in (0.3, 0.8, 1.0, 1.3):
            R = float(d * share)
            above = survival(d, Decimal(R))
            assert special.gammaincc(d, R) == pytest.approx(float(above), rel=1e-11, abs=1e-300)
            assert special.gammainc(d, R) == pytest.approx(float(1 - above), rel=1e-11, abs=1e-300)


@pytest.fixture
def narrow(monkeypatch):
    """Main cells that leave far more outside than they do: below them, above them."""

    def leave(low, high):
        monkeypatch.setattr(moment, "_LOW", low)
        monkeypatch.setattr(moment, "_HIGH", high)
        forget()

    def forget():
        moment._cells.cache_clear()
        moment._cached_moments.cache_clear()

    yield leave
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize(("low", "high"), [(1e-30, 0.05), (0.05, 1e-22)], ids=["above", "below"])
def test_mass_outside_the_main_cells_is_included(narrow, low, high):
    narrow(low, high)
    for d in (1, 3, 30):
        for q in (1.1, 2.0):
            for share in (0.02, 0.2):
                u = share * d / (q - 1)
                assert log_moment(q, u, d) >= quadrature(q, u, d)


@pytest.mark.parametrize("d", [1, 3, 105])
def test_the_weights_of_every_chord_are_above_the_exact_ones(d):
    """Against 80 digits: the slack covers the error of the gamma functions in every cell."""
    getcontext().prec = 80
    cells = moment._cells(d)
    nodes = [Decimal(float(node)) for node in cells.nodes]
    above, above_next = ([survival(shape, R) for R in nodes] for shape in (d, d + 1))
    for k, (a, b) in enumerate(itertools.pairwise(nodes)):
        mass, first = above[k] - above[k + 1], d * (above_next[k] - above_next[k + 1])
        assert cells.left[k] >= (b * mass - first) / (b - a)
        assert cells.right[k] >= (first - a * mass) / (b - a)


def survival(d, R):
    """P(Gamma(d, 1) > R) for whole d: a Poisson sum."""
    term = total = Decimal(1)
    for j in range(1, d):
        term = term * R / j
        total += term
    return total * (-R).exp()
