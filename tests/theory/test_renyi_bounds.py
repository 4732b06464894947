"""Renyi divergence of one round by exact quadrature: never above the bound, and above it without J."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from support import single_releases
from support.one_round import (
    OneRound,
    divergence,
    gaussian_grid,
    log_ratio,
    norm_grid,
    random_pair,
    smooth_width,
)
from taciturn.privacy.accounting.moment import log_moment

GAUSSIAN, NORM = tt.GaussianNoise(std=1.0), tt.NormNoise(rate=1.0)


def exact_gaussian(old, new, sigma, orders):
    step = min(0.8 * sigma, smooth_width(new.loss) * new.a / 2.5)
    e, weights = gaussian_grid(sigma, 6.5 * sigma + max(orders) * new.D, step)
    log_w = log_ratio(old, new, new.solve(e), GAUSSIAN, sigma)
    return np.array([divergence(log_w, weights, q) for q in orders])


def exact_norm(old, new, alpha, orders):
    e, weights = norm_grid(alpha)
    log_w = log_ratio(old, new, new.solve(e), NORM, alpha)
    return np.array([divergence(log_w, weights, q) for q in orders])


@pytest.mark.parametrize("seed", range(4))
def test_gaussian_quadrature_stays_below(seed):
    """4 x 50 random pairs, orders up to r x = 0.95."""
    rng = np.random.default_rng(seed)
    share = []
    for _ in range(50):
        old, new = random_pair(rng)
        sigma = new.D * np.exp(rng.uniform(np.log(0.7), np.log(4)))
        orders = 1 + rng.uniform(0.05, 0.95, 3) * min(4.0, 1 / new.x)
        exact = exact_gaussian(old, new, sigma, orders)
        bound = single_releases.renyi_gaussian(orders, new.D, sigma, new.x)
        assert (exact <= bound).all()
        share.append(np.max(exact / bound))
    assert max(share) > 0.93


@pytest.mark.parametrize("seed", range(4))
def test_norm_quadrature_stays_below(seed):
    """4 x 50 random pairs, orders up to 21."""
    rng = np.random.default_rng(100 + seed)
    share = []
    for _ in range(50):
        old, new = random_pair(rng)
        alpha = max(np.exp(rng.uniform(np.log(0.1), np.log(3))) / new.D, 0.4 / new.a)
        orders = 1 + np.exp(rng.uniform(np.log(0.05), np.log(20), 4))
        exact = exact_norm(old, new, alpha, orders)
        bound = single_releases.renyi_norm(orders, new.D, alpha, 2, new.x, new.pure(alpha))
        assert (exact <= bound).all()
        share.append(np.max(exact / bound))
    assert max(share) > 0.85


@pytest.mark.parametrize("mean", [exact_gaussian, exact_norm])
def test_quadrature_has_converged(mean):
    """The plain moment with q -> 0 and q -> 1 must be 1: the quadrature sees all of both densities."""
    rng = np.random.default_rng(7)
    for _ in range(5):
        old, new = random_pair(rng)
        scale = 2 * new.D if mean is exact_gaussian else max(0.5 / new.D, 0.4 / new.a)
        noise = GAUSSIAN if mean is exact_gaussian else NORM
        grid = gaussian_grid(scale, 10 * scale, new.a / 2.5) if mean is exact_gaussian else norm_grid(scale)
        weights = grid[1]
        log_w = log_ratio(old, new, new.solve(grid[0]), noise, scale)
        assert weights.sum() == pytest.approx(1, abs=1e-6)
        assert weights @ np.exp(log_w) == pytest.approx(1, abs=1e-4)


def line(scale):
    """Gauss-Legendre nodes on R, dense where the losses bend; ends of cells at the kinks of the hinge."""
    far = np.geomspace(20, 45 * scale, 60)
    edges = np.concatenate([-far[::-1], np.linspace(-20, 20, 401)[1:-1], far])
    x, w = np.polynomial.legendre.leggauss(20)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + x)).reshape(-1, 1), (half * w).ravel()


LOSSES = [tt.Logistic(), tt.SmoothHinge(h=0.5), tt.LogCosh(scale=1.0)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("kind", ["gaussian", "norm"])
def test_wide_noise_needs_the_jacobian(loss, kind):
    """One row against none, noise 1000 times wider than the row's effect: only the curvature is visible.

    The curvature is in a strip that the noise hits with probability ~ 1/scale; the displacement costs
    ~ 1/scale^2: without J the bound is too low, with J it holds. In one dimension, where quadrature is exact.
    """
    label = 1.0 if loss.kind == "classification" else 0.0
    alone = OneRound(loss, 4.0, 1.0, np.array([[1.0]]), np.array([label]))
    gone = alone.with_sample(np.zeros(1), label)
    width = 1000.0
    noise, scale = (GAUSSIAN, width) if kind == "gaussian" else (NORM, 1 / width)
    f, step = line(width)
    orders = 1 + np.array([0.1, 0.5, 0.9]) / alone.x
    for old, new in ((alone, gone), (gone, alone)):
        weights = step * np.exp(new.log_density(f, noise, scale))
        assert weights.sum() == pytest.approx(1, abs=1e-8)
        log_w = log_ratio(old, new, f, noise, scale)
        exact = np.array([divergence(log_w, weights, q) for q in orders])
        if kind == "gaussian":
            bound = single_releases.renyi_gaussian(orders, old.D, scale, old.x)
            without = orders * old.D**2 / (2 * scale**2)
        else:
            bound = single_releases.renyi_norm(orders, old.D, scale, 1, old.x, old.pure(scale))
            without = log_moment(orders, old.D * scale, 1) / (orders - 1)
        assert (exact <= bound).all()
        assert (exact > 1.5 * without).all()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("kind", ["gaussian", "norm"])
def test_one_dimension_stays_below(loss, kind):
    """All three losses, kinks included, narrow and wide noise, both directions."""
    f, step = line(30.0)
    for k in (0.2, 1.0, 4.0):
        for x_new, label_new in ((-1.0, 1.0), (0.0, 1.0), (1.0, -1.0)):
            old = OneRound(loss, k, 1.0, np.array([[1.0]]), np.array([1.0]))
            new = old.with_sample(np.array([x_new]), label_new)
            for width in (1.0, 5.0, 25.0):
                noise, scale = (GAUSSIAN, width) if kind == "gaussian" else (NORM, 1 / width)
                weights = step * np.exp(new.log_density(f, noise, scale))
                log_w = log_ratio(old, new, f, noise, scale)
                orders = 1 + np.array([0.05, 0.5, 0.95]) / max(old.x, 0.25)
                exact = np.array([divergence(log_w, weights, q) for q in orders])
                if kind == "gaussian":
                    bound = single_releases.renyi_gaussian(orders, old.D, scale, old.x)
                else:
                    bound = single_releases.renyi_norm(orders, old.D, scale, 1, old.x, old.pure(scale))
                assert (exact <= bound).all()
