"""Hockey sticks of one round with Gaussian noise: never above those of mu-GDP, and above them without V."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erfc, ndtr
from scipy.stats import norm

import taciturn as tt
from support.one_round import OneRound, random_pair
from taciturn.privacy.accounting import bounds, totals
from taciturn.privacy.accounting.gaussian import compose_mu, gaussian_delta, gaussian_epsilon
from taciturn.privacy.accounting.widening import NODES, penalty_mu, widening

NOISE = tt.GaussianNoise(std=1.0)
SHAPES = {"logistic": "logistic", "smooth-hinge": "one-sided", "log-cosh": "log-cosh"}
REACHED = {
    "logistic": 0.65,
    "smooth-hinge": 0.93,
    "log-cosh": 0.88,
}  # on a line no two logistic rows are steep
LOSSES = [tt.Logistic(), tt.SmoothHinge(h=0.5), tt.LogCosh(scale=1.0)]


def mu_of(pair, sigma):
    return float(penalty_mu(pair.D, sigma, pair.x, SHAPES[pair.loss.name]))


def on_the_line(old, new, sigma, epsilons, points=6001):
    """P_old(A) - e^epsilon P_new(A) for the best union A of small intervals, whose masses are exact."""
    middle = float(old.solve(np.zeros((1, 1)))[0, 0])
    bend = np.sinh(np.linspace(-12, 12, points)) / np.sinh(12)  # finer where the losses bend
    f = np.unique(np.concatenate([bend, middle / (40 * sigma) + np.linspace(-1, 1, points)])) * 40 * sigma
    p, q = (-np.diff(ndtr(side.noise(f[:, None])[:, 0] / sigma)) for side in (old, new))
    return np.array([np.maximum(p - np.exp(s) * q, 0).sum() for s in epsilons])


def in_the_plane(old, new, sigma, epsilons, points=361):
    """The same by the densities, summed on a grid."""
    middle = new.solve(np.zeros((1, 2)))[0]
    side = np.linspace(-1, 1, points) * (8 * sigma + 2 * new.D) / new.a
    f = middle + np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    p, q = (np.exp(one.log_density(f, NOISE, sigma)) * (side[1] - side[0]) ** 2 for one in (old, new))
    assert p.sum() == pytest.approx(1, abs=1e-6) and q.sum() == pytest.approx(1, abs=1e-6)
    return np.array([np.maximum(p - np.exp(s) * q, 0).sum() for s in epsilons])


def random_line(rng, loss):
    """A pair in one dimension: any rows, any centre, noise from narrow to wide."""
    a = 1.0 if rng.random() < 0.5 else rng.uniform(1, 3)
    sigma = a * np.exp(rng.uniform(np.log(0.1), np.log(30)))
    rows = rng.integers(1, 4)
    X = rng.choice([-1.0, 1.0], (rows, 1)) * np.where(rng.random((rows, 1)) < 0.6, 1.0, rng.random((rows, 1)))
    y = rng.choice([-1.0, 1.0], rows) if loss.kind == "classification" else rng.normal(0, 2, rows)
    k = sigma * np.exp(rng.uniform(np.log(0.02), np.log(2)))
    far = rng.normal(0, 2) * sigma if rng.random() < 0.7 else rng.choice([-1, 1]) * (40 * a + 5 * sigma)
    old = OneRound(loss, k, a, X, y, centre=np.array([far]))
    new = old.with_sample(rng.choice([-1, -0.9, 0, 0.7, 1], 1), rng.choice(y))
    return old, new, sigma


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_on_the_line_every_hockey_stick_stays_below(loss):
    """250 pairs, seven epsilons each, both directions."""
    rng = np.random.default_rng(5)
    share = []
    for _ in range(250):
        old, new, sigma = random_line(rng, loss)
        mu = mu_of(old, sigma)
        epsilons = mu * np.array([0, 0.25, 0.5, 1, 1.5, 2, 3])
        bound = gaussian_delta(mu, epsilons)
        for one, other in ((old, new), (new, old)):
            exact = on_the_line(one, other, sigma, epsilons)
            assert np.all(exact <= bound + 1e-13)
            share.append(np.max(exact / bound))
    assert max(share) > REACHED[loss.name]


@pytest.mark.parametrize("seed", range(2))
def test_in_the_plane_where_the_displacement_turns(seed):
    """Rows at any angle: length and direction of Delta change with the noise."""
    rng = np.random.default_rng(50 + seed)
    share = []
    for _ in range(12):
        old, new = random_pair(rng)
        sigma = new.D * np.exp(rng.uniform(np.log(0.5), np.log(6)))
        mu = mu_of(new, sigma)
        epsilons = mu * np.array([0, 0.5, 1, 2])
        exact = in_the_plane(old, new, sigma, epsilons)
        bound = gaussian_delta(mu, epsilons)
        assert np.all(exact <= bound * (1 + 1e-3) + 1e-9)  # the grid's error
        share.append(np.max(exact / bound))
    assert max(share) > 0.85


def test_two_steep_rows_in_the_plane_reach_the_bound():
    """Nearly opposite records, both steep for all noise: mu cannot be any smaller."""
    lean = np.array([np.cos(0.02), np.sin(0.02)])
    old = OneRound(tt.Logistic(), 0.3, 1.0, lean[None], np.ones(1), centre=np.array([0.0, -3000.0]))
    new = old.with_sample(lean * [-1, 1], 1.0)
    for sigma in (0.5, 3.0):
        mu = mu_of(old, sigma)
        epsilons = mu * np.array([0.5, 1, 2])
        share = in_the_plane(old, new, sigma, epsilons) / gaussian_delta(mu, epsilons)
        assert np.all(share > 0.99) and np.all(share < 1)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_wide_noise_needs_the_widening(loss):
    """One row against none: only the curvature differs, and V = 1 would understate the cost."""
    label = 1.0 if loss.kind == "classification" else 0.0
    sigma, k = 60.0, 0.2
    alone = OneRound(loss, k, 1.0, np.array([[1.0]]), np.array([label]), centre=np.array([10.0]))
    gone = alone.with_sample(np.zeros(1), label)
    mu, plain = mu_of(alone, sigma), alone.D / sigma
    epsilons = plain * np.array([1.0, 1.5, 2.0, 3.0])
    exact = on_the_line(alone, gone, sigma, epsilons)
    assert np.all(exact <= gaussian_delta(mu, epsilons))
    assert np.any(exact > 1.5 * gaussian_delta(plain, epsilons))


# -- V ----------------------------------------------------------------------------------------------


def excess(p, z, t):
    """E(pZ - p' - t)+ on a grid."""
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return np.trapezoid(np.maximum(z * p - np.gradient(p, z) - t, 0) * density, z)


CURVES = {
    "logistic": lambda u: 1 / (1 + np.exp(4 * u)),
    "one-sided": lambda u: np.clip(-u, 0, 1),
    "log-cosh": lambda u: -np.tanh(u),
    "any": lambda u: np.clip(-u, -1, 1),
}


@pytest.mark.parametrize("shape", NODES)
def test_the_score_of_one_sample_stays_below_a_wider_normal_in_convex_order(shape):
    """Slopes that fall as steeply as allowed, in places, from any start: the extreme cases of V+ and V-."""
    rng = np.random.default_rng(8)
    z = np.linspace(-9, 9, 18_001)
    for w, V in NODES[shape]:
        for _ in range(20):
            steep = np.repeat(rng.random(60) < rng.choice([0.2, 0.5, 1.0]), 301)[: z.size]
            u = np.cumsum(np.where(steep, w, 0.0)) * (z[1] - z[0])
            p = CURVES[shape](u - u[rng.integers(3000, 15000)] + rng.normal() / 2)
            for t in (0.05, 0.3, 1.0, 2.0):
                upper, lower = excess(p, z, t), excess(-p, z, t)
                each = [_needed(value, t) for value in (upper, lower)]
                assert sum(each) / 2 <= V * (1 + 2e-4)  # kinks on a grid


def _needed(value, t):
    """The least V >= 1 with E(VZ - t)+ >= value."""
    low, high = 1.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        y = t / middle
        wide = middle * (np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi) - y * erfc(y / np.sqrt(2)) / 2)
        low, high = (middle, high) if wide < value else (low, middle)
    return high


@pytest.mark.parametrize("shape", NODES)
def test_more_noise_and_less_bend_never_cost_more(shape):
    w = np.geomspace(1e-3, 100, 4000)
    V = widening(shape, w)
    assert np.all(V >= 1) and np.all(np.diff(V) >= 0)
    assert np.all(np.diff(V / w) <= 1e-12)
    mu = penalty_mu(0.2, np.geomspace(0.01, 1e4, 500), 0.03, shape)
    assert np.all(np.diff(mu) <= 1e-12 * mu[:-1])


def test_the_papers_run():
    """C = 1750, B = 9044, V = 2, eta = 0.5, sigma = sqrt(105) / 3, 100 rounds: 2.956 by Renyi divergence."""
    k = 1750 / (2 * 0.5 * 2 * 9044)
    mu = penalty_mu(2 * k, np.sqrt(105) / 3, k / 4, "logistic")
    assert float(mu) == pytest.approx(2 * k / (np.sqrt(105) / 3), rel=1e-7)
    assert float(gaussian_epsilon(compose_mu(np.full(100, mu)), 1e-5)) == pytest.approx(2.2921, abs=1e-4)


def test_a_run_on_adult_that_renyi_divergence_certifies_at_one():
    """Three rounds, planned for epsilon = 1 by Renyi divergence; 9,044 rows, degree 2, 5 sites."""
    eta, sigma = 0.000146276 * 1.118 ** np.arange(3), 4.15817 * 0.68 ** np.arange(3)
    k, a = bounds.sample_weight(1.0, eta, 2, 9044), bounds.least_eigenvalue(5.85104e-05 / 5, eta, 2)
    D, x = bounds.displacement(k, 1.0), bounds.bend(k, a, 0.25)
    renyi = totals.renyi_gaussian_total(bounds.ORDERS, D, sigma, x)
    assert float(bounds.to_epsilon(bounds.ORDERS, renyi, 1e-5)[0]) == pytest.approx(0.9999, abs=1e-4)
    mu = compose_mu(penalty_mu(D, sigma, x, "logistic"))
    assert float(gaussian_epsilon(mu, 1e-5)) == pytest.approx(0.7957, abs=1e-3)


# -- Theorem J: one t for all lines ---------------------------------------------------------------------


def _line(w: float, centre: float, t: float) -> tuple[float, float]:
    """(b, E[psi (pZ - p')]) on one line: the logistic slope falls as fast as it may, psi = [pZ - p' > t]."""
    z = np.linspace(-12.0, 12.0, 48_001)
    weight = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    p = 1 / (1 + np.exp(np.clip(4 * w * (z - centre), -700, 700)))
    score = p * z + w * 4 * p * (1 - p)
    chosen = score > t
    return float(np.sum(weight[chosen])), float(np.sum((score * weight)[chosen]))


@pytest.mark.parametrize("w", [0.5, 1.5, 3.0])
def test_theorem_j_lines_on_both_sides_of_one_half(w):
    """The mean over lines of E[psi s] is at most V+ I(b), and V- I(b) from b = 1/2 on, b the overall mean."""
    above = 2 * float(widening("logistic", w)) - 1  # V+; V- = 1 for a slope with one sign
    rng = np.random.default_rng(5)
    mixed = 0
    for _ in range(150):
        lines = [_line(w, rng.uniform(-2, 3), rng.uniform(-1.5, 2.5)) for _ in range(4)]
        share = rng.dirichlet(np.ones(4))
        b, value = (float(share @ part) for part in zip(*lines, strict=True))
        mixed += min(one for one, _ in lines) < 0.5 < max(one for one, _ in lines)
        limit = norm.pdf(norm.ppf(b))
        assert value <= (above if b <= 0.5 else 1.0) * limit * (1 + 1e-4) + 1e-6
        t = above * norm.ppf(1 - b)
        if 0 <= t < np.inf:  # the step itself: the same t on every line, whatever its own b is
            s = t / above
            g = norm.pdf(s) - s * norm.sf(s)
            for own, found in lines:
                assert found <= above * g + t * own + 1e-6
            assert above * g + t * b == pytest.approx(above * limit, rel=1e-9)
    assert mixed > 50
