"""Pure epsilon of one round with norm noise: the log likelihood ratio stays below, and comes close."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from support.one_round import OneRound, log_ratio, norm_grid, random_pair
from taciturn.privacy.accounting import bounds

NOISE = tt.NormNoise(rate=1.0)


def test_determinant_ratio_is_at_most_1_plus_x_and_attains_it():
    rng = np.random.default_rng(0)
    reached = 0.0
    for _ in range(300):
        old, new = random_pair(rng)
        f = np.concatenate([np.zeros((1, 2)), 3 * rng.standard_normal((30, 2))])
        gap = np.linalg.slogdet(old.hessian(f))[1] - np.linalg.slogdet(new.hessian(f))[1]
        assert np.abs(gap).max() <= np.log1p(old.x) * (1 + 1e-12)
        reached = max(reached, np.abs(gap).max() / np.log1p(old.x))
    assert reached > 0.9
    alone = OneRound(tt.Logistic(), 2.0, 1.3, np.array([[1.0, 0.0]]), np.array([1.0]))
    gone = alone.with_sample(np.zeros(2), 1.0)
    ratio = np.linalg.det(alone.hessian(np.zeros(2))) / np.linalg.det(gone.hessian(np.zeros(2)))
    assert ratio == pytest.approx(1 + alone.x)


def test_eigenvalues_of_the_bend_lie_between_their_ends():
    """G H^-1: at most one eigenvalue of each sign, within [-x/(1+x), x]."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        old, new = random_pair(rng)
        f = 3 * rng.standard_normal(2)
        H = old.hessian(f)
        mu = np.linalg.eigvals((new.hessian(f) - H) @ np.linalg.inv(H)).real
        assert mu.max() <= old.x * (1 + 1e-9) and mu.min() >= -old.x / (1 + old.x) * (1 + 1e-9)
        assert (mu > 1e-9).sum() <= 1 and (mu < -1e-9).sum() <= 1


def test_log_ratio_never_above_the_pure_bound():
    """200 random pairs, logistic and log-cosh, against the tight bound of each."""
    rng = np.random.default_rng(2)
    share = []
    for _ in range(200):
        old, new = random_pair(rng)
        alpha = np.exp(rng.uniform(np.log(0.02), np.log(3)))
        e, _ = norm_grid(alpha, 36, 24)
        largest = np.abs(log_ratio(old, new, new.solve(e), NOISE, alpha)).max()
        assert largest <= old.pure(alpha) * (1 + 1e-9)
        share.append(largest / old.pure(alpha))
    assert max(share) > 0.98


def test_small_rates_really_need_the_logistic_maximum():
    """a = 1, k = 3, alpha = 0.2: a pair whose log ratio is 1.51, well above C alpha / (eta V B) = 1.2.

    The rows are almost opposite and f lies far away across, so the new sample is steep and flat, while the
    old one is at the best p; the history puts the noise on the line of the displacement.
    """
    k, a, alpha, p = 3.0, 1.0, 0.2, 2 / 3
    lean = 0.05
    x, x_new = np.array([1.0, 0.0]), np.array([-np.cos(lean), np.sin(lean)])
    f = np.array([np.log((1 - p) / p), -300.0])
    old = OneRound(tt.Logistic(), k, a, x[None], np.ones(1))
    new = old.with_sample(x_new, 1.0)
    move = new.noise(f) - old.noise(f)
    shift = move - old.noise(f)
    pair = [OneRound(s.loss, k, a, s.X, s.y, centre=shift) for s in (old, new)]
    found = float(log_ratio(*pair, f, NOISE, alpha))
    assert 2 * k * alpha == pytest.approx(1.2)
    assert 1.5 < found <= bounds.pure_logistic(k, a, alpha)
    assert found > 1.25 * 1.2


def test_smooth_hinge_in_one_dimension():
    """L'' jumps, and may be 0: the general bound still holds, and is nearly reached."""
    loss = tt.SmoothHinge(h=0.5)
    found = []
    for k in (0.1, 1.0, 3.0):
        for alpha in (0.05, 1.0):
            old = OneRound(loss, k, 1.0, np.array([[1.0]]), np.array([1.0]))
            for x_new in (-1.0, 0.0, 0.5):
                new = old.with_sample(np.array([x_new]), 1.0)
                for centre in (-3.0, 0.0, 2.0):
                    pair = [OneRound(loss, k, 1.0, s.X, s.y, centre) for s in (old, new)]
                    f = np.linspace(-30, 30, 24_001)[:, None]
                    largest = np.abs(log_ratio(*pair, f, NOISE, alpha)).max()
                    assert largest <= old.pure(alpha)
                    found.append(largest / old.pure(alpha))
    assert max(found) > 0.9
