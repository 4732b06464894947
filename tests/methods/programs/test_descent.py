"""The public half of the descent: states, shapes, and convergence to the optimum."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.methods.programs import step_size as rule
from taciturn.methods.programs.descent import Descent
from taciturn.methods.programs.descent_losses import BoundedLogistic, bend
from taciturn.methods.programs.moments import Full, Wide, symmetric
from taciturn.objective import LogCosh, Logistic, SmoothHinge
from taciturn.objective.softmax import Softmax, SoftmaxObjective
from taciturn.privacy.accounting.sensitivity import REACH


def made_rows(seed=0, n=4000, d=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(2 * d)
    X[:, -1] = 0.5
    X /= np.maximum(1, np.linalg.norm(X[:, :-1], axis=1, keepdims=True) / 0.8)
    X[:, -1] = 0.5
    truth = 3 * rng.normal(size=d)
    y = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-X @ truth)), 1.0, -1.0)
    return X, y


def first_of(X, full):
    M = X.T @ X / len(X)
    if full:
        return (np.triu(M, 1) * math.sqrt(2) + np.diag(np.diag(M)))[np.triu_indices(len(M))]
    return np.concatenate([X.mean(axis=0)[:-1], np.diag(M)[:-1]])


def descend(loss, X, slopes, full, noise=1e-9, steps=60, outputs=1):
    d = X.shape[1]
    descent = Descent(loss, d, outputs, full, (noise,) * (steps + 1), 0.0, 0.5)
    state = descent.advance(descent.start(1), first_of(X, full)[None])
    for _ in range(steps):
        state = descent.advance(state, slopes(state.y[0]).reshape(1, -1))
    return state


@pytest.mark.parametrize("full", [True, False])
def test_without_noise_it_finds_the_optimum(full):
    X, y = made_rows()
    Z = X * y[:, None]
    state = descend(Logistic(), X, lambda f: -(1 / (1 + np.exp(Z @ f[0]))) @ Z / len(Z), full)
    gradient = -(1 / (1 + np.exp(Z @ state.f[0, 0]))) @ Z / len(Z)
    assert np.linalg.norm(gradient) < 2e-4
    assert state.t == 61


def test_the_bounded_loss_estimates_what_the_logistic_loss_does():
    X, y = made_rows(n=100_000)
    Z = X * y[:, None]
    plain = descend(Logistic(), X, lambda f: -(1 / (1 + np.exp(Z @ f[0]))) @ Z / len(Z), True).f[0, 0]
    bounded = descend(
        BoundedLogistic(), X, lambda f: -0.5 * np.exp(-np.maximum(Z @ f[0], 0)) @ Z / len(Z), True
    ).f[0, 0]
    np.testing.assert_allclose(X @ bounded, X @ plain, atol=0.15)


@pytest.mark.parametrize("loss", [Logistic(), BoundedLogistic()])
def test_mean_slope_vanishes_where_the_odds_are_true(loss):
    u = np.linspace(-5, 5, 21)
    p = 1 / (1 + np.exp(-u))
    np.testing.assert_allclose(p * loss.slope(u) - (1 - p) * loss.slope(-u), 0, atol=1e-15)
    mean = p * loss.curvature(u) + (1 - p) * loss.curvature(-u)
    away = u != 0  # the bounded loss bends at one side of 0
    np.testing.assert_allclose(bend(loss, u, 0, np.zeros(1))[away], mean[away], rtol=1e-12)


def test_second_derivatives_stay_within_the_curvature_bound():
    u = np.linspace(-20, 20, 81)
    for loss in (Logistic(), BoundedLogistic(), SmoothHinge(0.3), LogCosh(2.0), Softmax(4)):
        values = bend(loss, u, 0, np.zeros(4 if isinstance(loss, Softmax) else 1))
        assert np.all(values >= 0) and np.all(values <= loss.curvature_bound)
    assert bend(Softmax(4), np.zeros(1), 0, np.zeros(4))[0] == pytest.approx(1 / 4)


@pytest.mark.parametrize("kind", [Full, Wide])
def test_shapes_multiply_and_solve(kind):
    X, _ = made_rows()
    shape = kind.from_release(first_of(X, kind is Full), 1e-9, 0.5)
    M = np.stack([shape.times(e) for e in np.eye(X.shape[1])])
    g = np.arange(1.0, 7.0)
    solved = np.linalg.solve(0.3 * M + 0.2 * np.eye(6), g)
    np.testing.assert_allclose(shape.solve(0.3, 0.2, g), solved, rtol=1e-9)
    mean, std = shape.margins(g)
    assert mean == pytest.approx(float(np.mean(X @ g)), abs=1e-2)
    if kind is Full:
        np.testing.assert_allclose(M, X.T @ X / len(X), atol=1e-2)
        assert std == pytest.approx(float(np.std(X @ g)), rel=0.05)


def test_noise_in_the_moments_is_not_taken_for_structure():
    rng = np.random.default_rng(1)
    d, noise = 40, 0.05
    released = first_of(np.eye(d)[rng.integers(0, d, 4000)], True)
    shape = Full.from_release(released + noise * rng.normal(size=len(released)), noise, None)
    assert shape.levels.max() < 3 / d
    assert np.linalg.eigvalsh(symmetric(released + noise * rng.normal(size=len(released)))).max() > 10 / d


def test_distant_point_is_projected_back():
    descent = Descent(Logistic(), 2, 1, True, (1e-9,) * 4, 0.0, None)
    state = descent.advance(descent.start(1), np.array([[0.5, 0.0, 0.5]]))
    for _ in range(3):
        state = descent.advance(state, np.array([[-1e9, 1e9]]))
        assert np.linalg.norm(state.y) <= REACH * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    full=st.booleans(),
    loss=st.sampled_from([BoundedLogistic(), SmoothHinge(), LogCosh(), Softmax(3, True)]),
    size=st.sampled_from([1e-6, 1.0, 1e7]),
)
def test_model_stays_finite_whatever_a_hostile_site_adds(seed, full, loss, size):
    rng, d, outputs = np.random.default_rng(seed), 4, getattr(loss, "classes", 1)
    descent = Descent(loss, d, outputs, full, (1e-3,) * 6, 0.0, 0.5)
    state = descent.advance(descent.start(1), size * rng.normal(size=(1, 10 if full else 6)))
    for _ in range(5):
        state = descent.advance(state, size * np.exp(rng.normal()) * rng.normal(size=(1, outputs * d)))
        assert np.all(np.isfinite(state.f)) and np.linalg.norm(state.y) <= REACH * (1 + 1e-12)


def test_more_noise_means_a_shorter_descent():
    H = np.full(10, 0.01)
    times = [rule.run_time(H, 1.0, noise) for noise in (1e-4, 1e-3, 1e-2)]
    assert times[0] > times[1] > times[2]
    assert rule.solution_scale(5.0 * H, H, 1e-8) > rule.solution_scale(0.5 * H, H, 1e-8)


def test_bounded_softmax_is_the_gradient_of_no_loss():
    """For three classes the Jacobian of w(p) (p - e_y) is not symmetric; for two, and unbounded, it is."""

    def field(u, loss):
        row = SoftmaxObjective(np.ones((1, 1)), [0.0], loss=loss)
        (block,) = row.blocks(1)
        return row.residuals(block, u.reshape(1, loss.classes, 1), loss)[0, 0]

    def skew(loss):
        u, moves = np.array([0.3, -0.8, 0.5][: loss.classes]), 1e-5 * np.eye(loss.classes)
        jacobian = np.array([field(u + move, loss) - field(u - move, loss) for move in moves]) / 2e-5
        return np.abs(jacobian - jacobian.T).max()

    assert skew(Softmax(3)) < 1e-9 and skew(Softmax(2, bounded=True)) < 1e-9
    assert skew(Softmax(3, bounded=True)) > 1e-2


def test_a_noisy_mean_is_shrunk_by_the_share_of_noise_in_it():
    """mean (1 - k noise^2 / ||mean||^2), and nothing where the noise is longer than the mean."""
    mean, squares = np.array([0.3, -0.4]), np.array([0.2, 0.3])
    kept = Wide.from_release(np.concatenate([mean, squares]), 0.1, None).mean
    np.testing.assert_allclose(kept, mean * (1 - 2 * 0.01 / 0.25), rtol=1e-12)
    assert not Wide.from_release(np.concatenate([mean, squares]), 1.0, None).mean.any()
