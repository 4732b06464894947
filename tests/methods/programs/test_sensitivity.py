"""Sensitivity: neighbouring data sets move a sum at most as far as stated, and some move it that far."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.methods.programs.descent_losses import BoundedLogistic, loss_facts
from taciturn.methods.programs.descent_rows import MarginShare, SoftmaxShare
from taciturn.objective import LocalObjective, LogCosh, Logistic, SmoothHinge
from taciturn.objective.softmax import Softmax, SoftmaxObjective
from taciturn.privacy.sums import GRADIENT, MOMENTS, SQUARES, SumTerms

LOGISTIC = [Logistic(), BoundedLogistic(), Softmax(3), Softmax(3, bounded=True)]
LOSSES = [*LOGISTIC, SmoothHinge(0.5), SmoothHinge(2.0), LogCosh(0.7)]
D = 4


def bounds(part, n, *, loss=LOSSES[0], X=1.0, first=False):
    """S and gamma as the accountant derives them."""
    return SumTerms(loss_facts(loss), n, n, D, X).bounds(part, first=first)


def make_share(loss, X, y, *, total, full=True, constant=None, weights=None):
    facts = {"total": total, "full": full, "constant": constant}
    person = {} if weights is None else {"weights": weights, "count": total}
    if isinstance(loss, Softmax):
        return SoftmaxShare(SoftmaxObjective(X, y, loss=loss, **person), loss, **facts)
    own = Logistic() if isinstance(loss, BoundedLogistic) else loss
    objective = LocalObjective(X, y, loss=own, C=1.0, regularization=1.0, sites=2, **person)
    return MarginShare(objective, loss, **facts)


def labels(loss, rng, rows):
    if isinstance(loss, Softmax):
        return rng.integers(0, 3, rows).astype(float)
    return rng.normal(size=rows) * 10 if loss.kind == "regression" else rng.choice([-1.0, 1.0], rows)


def unit_rows(rng, rows, d=D):
    X = rng.normal(size=(rows, d)) * np.exp(rng.normal(size=(rows, d)))
    return X / np.maximum(
        np.linalg.norm(X, axis=1, keepdims=True), rng.uniform(size=(rows, 1)) * 0.5 + 1e-9 + 0.5
    )


def neighbours(seed, loss, people):
    """The same rows but for those of one person; every row has a weight, a person's add up to at most 1."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 4, people)
    weights = np.repeat(1.0 / rows, rows) * rng.choice([1.0, 0.5])
    X, y = unit_rows(rng, rows.sum()), labels(loss, rng, rows.sum())
    X2, y2, own = X.copy(), y.copy(), slice(0, rows[0])
    X2[own] = unit_rows(rng, rows[0])
    if rng.uniform() < 0.5:
        X2[own] = -X[own]
    y2[own] = labels(loss, rng, rows[0])
    return (X, y, weights), (X2, y2, weights), rng


SEEDS, PEOPLE = st.integers(0, 2**32), st.integers(1, 4)


@settings(max_examples=120, deadline=None)
@given(seed=SEEDS, loss=st.sampled_from(LOSSES), people=PEOPLE, first=st.booleans())
def test_neighbouring_data_move_a_gradient_by_at_most_the_sensitivity(seed, loss, people, first):
    one, other, rng = neighbours(seed, loss, people)
    outputs = 3 if isinstance(loss, Softmax) else 1
    y = np.zeros((1, outputs, D)) if first else rng.normal(size=(1, outputs, D)) * np.exp(3 * rng.normal())
    moved = [make_share(loss, X, t, total=people, weights=w).gradient(y) for X, t, w in (one, other)]
    S = bounds(GRADIENT, people, loss=loss, first=first).sensitivity
    assert np.linalg.norm(moved[0] - moved[1]) <= S * (1 + 1e-9)


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS, full=st.booleans(), people=PEOPLE)
def test_neighbouring_data_move_the_moments_by_at_most_the_sensitivity(seed, full, people):
    one, other, _ = neighbours(seed, Logistic(), people)
    moved = [
        make_share(Logistic(), X, t, total=people, full=full, weights=w).moments() for X, t, w in (one, other)
    ]
    S = bounds(MOMENTS if full else SQUARES, people).sensitivity
    assert np.linalg.norm(moved[0] - moved[1]) <= S * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_the_bound_on_gradients_is_attained(loss):
    """Two almost opposite rows, both far on the wrong side; residuals may have any size."""
    lean, outputs = 0.02, 3 if isinstance(loss, Softmax) else 1
    y = np.zeros((1, outputs, D))
    y[0, 0, 0] = 4000.0
    rows = np.array([[1.0, 0, 0, 0], [1.0, 0, 0, 0]])
    rows[:, :2] = [[lean, math.sqrt(1 - lean**2)], [lean, -math.sqrt(1 - lean**2)]]
    wrong = {"classes": 1.0, "classification": -1.0, "regression": 1e9}[loss.kind]
    moved = [make_share(loss, row[None], [wrong], total=1).gradient(y) for row in rows]
    S = bounds(GRADIENT, 1, loss=loss).sensitivity
    assert np.linalg.norm(moved[0] - moved[1]) == pytest.approx(S, rel=1e-3)


@pytest.mark.parametrize("loss", LOGISTIC, ids=lambda loss: loss.name)
def test_the_bound_at_zero_is_attained(loss):
    x, outputs = np.eye(D)[:1], 3 if isinstance(loss, Softmax) else 1
    zero, label = np.zeros((1, outputs, D)), [1.0]
    moved = make_share(loss, x, label, total=1).gradient(zero) - make_share(
        loss, -x, label, total=1
    ).gradient(zero)
    assert np.linalg.norm(moved) == pytest.approx(
        bounds(GRADIENT, 1, loss=loss, first=True).sensitivity, rel=1e-12
    )


def test_the_bounds_on_moments_are_attained():
    e1, e2 = np.eye(D)[:1], np.eye(D)[1:2]
    moved = [make_share(Logistic(), x, [1.0], total=1).moments() for x in (e1, e2)]
    assert np.linalg.norm(moved[0] - moved[1]) == pytest.approx(bounds(MOMENTS, 1).sensitivity, rel=1e-12)
    for r2 in (1.0, 0.8, 0.5, 0.3):
        u = min(1.0, 1 / (2 * r2))
        T = math.sqrt(1 - u * u)
        a = math.sqrt(r2) * np.array([[math.sqrt((1 + T) / 2), math.sqrt((1 - T) / 2), 0, 0]])
        b = -a[:, [1, 0, 2, 3]]
        moved = [make_share(Logistic(), x, [1.0], total=1, full=False).moments() for x in (a, b)]
        S = bounds(SQUARES, 1, X=math.sqrt(r2)).sensitivity
        assert np.linalg.norm(moved[0] - moved[1]) == pytest.approx(S, rel=1e-9)


@pytest.mark.parametrize("part", [GRADIENT, MOMENTS, SQUARES])
def test_a_unit_moves_a_mean_by_its_share(part):
    """The bounds above are attained by one unit of one; a mean over n units moves by an n-th of that."""
    alone = bounds(part, 1, X=0.9).sensitivity
    assert [n * bounds(part, n, X=0.9).sensitivity for n in (2, 700)] == pytest.approx([alone] * 2, rel=1e-14)


def test_floating_point_errors_of_a_gradient_grow_with_the_square_of_the_norm():
    """Rows that are k times as long have margins, and errors of margins, that are k times as large."""
    one, eight = (bounds(GRADIENT, 10, X=X).stray for X in (1.0, 8.0))
    assert eight == pytest.approx(64 * one, rel=0.02)


def test_floating_point_errors_of_a_gradient_grow_with_the_number_of_products_in_a_margin():
    """Each of d products, and their sum, is rounded; the points may be as long as `REACH`."""
    few, many = (SumTerms(loss_facts(Logistic()), 10, 10, d, 1.0).bounds(GRADIENT).stray for d in (4, 400))
    assert many == pytest.approx((402 + 2) / (6 + 2) * few, rel=0.05)


def test_slopes_at_zero():
    """The accountant's table of slopes agrees with the losses."""
    for loss in (Logistic(), BoundedLogistic(), SmoothHinge(0.5), SmoothHinge(2.0)):
        assert loss_facts(loss).slope_at_zero == pytest.approx(abs(loss.slope(np.zeros(1)))[0], rel=1e-15)
    assert loss_facts(LogCosh(3.0)).slope_at_zero == 1.0
    assert loss_facts(Softmax(4)).slope_at_zero == Softmax(4).slope_at_zero


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("size", [1.0, 100.0, 4000.0])
def test_floating_point_errors_are_below_what_is_stated(loss, size):
    rng = np.random.default_rng(3)
    rows, outputs = 3000, 3 if isinstance(loss, Softmax) else 1
    X, t = unit_rows(rng, rows), labels(loss, rng, rows)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.normal(size=(outputs, D))
    y *= size / np.linalg.norm(y)
    h = make_share(loss, X, t, total=rows).gradient(y[None])[0]
    exact = _exact_gradient(loss, X, t, y) / rows
    stray = bounds(GRADIENT, rows, loss=loss).stray
    assert np.linalg.norm(h - exact.astype(float)) <= stray
    assert stray < 1e-4 * bounds(GRADIENT, rows, loss=loss).sensitivity


@pytest.mark.parametrize("loss", LOGISTIC[:2], ids=lambda loss: loss.name)
def test_floating_point_errors_occur(loss):
    """The same row many times, with a margin that is a small difference of large numbers: errors add up."""
    rows, worst = 3000, 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(1, D))
        x /= np.linalg.norm(x)
        X, t, y = np.repeat(x, rows, axis=0), np.ones(rows), rng.normal(size=(1, D))
        y *= 4000.0 / np.linalg.norm(y)
        y -= (y @ x[0])[:, None] * x * (1 - 1e-4 * rng.normal())
        h = make_share(loss, X, t, total=rows).gradient(y[None])[0]
        worst = max(worst, np.linalg.norm(h - (_exact_gradient(loss, X, t, y) / rows).astype(float)))
    stray = bounds(GRADIENT, rows, loss=loss).stray
    assert 0.01 * stray < worst <= stray


def _exact_gradient(loss, X, t, y):
    """In extended precision, by another formula."""
    wide = np.longdouble
    X, t, u = X.astype(wide), t.astype(wide), X.astype(wide) @ y.astype(wide).T
    if isinstance(loss, Softmax):
        p = np.exp(u - u.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        left = p - np.eye(3)[t.astype(int)]
        if loss.bounded:
            far = np.max([np.sqrt(((p - e) ** 2).sum(axis=1)) for e in np.eye(3)], axis=0)
            left *= (np.sqrt(wide(2) / 3) / far)[:, None]
        return (left.T @ X).ravel()
    z = t - u[:, 0] if loss.kind == "regression" else t * u[:, 0]
    slope = {
        "logistic": lambda: -1 / (1 + np.exp(z)),
        "bounded-logistic": lambda: -np.exp(-np.maximum(z, 0)) / 2,
        "smooth-hinge": lambda: -np.clip((1 + wide(loss.h) - z) / (2 * wide(loss.h)), 0, 1),
        "log-cosh": lambda: np.tanh(z / wide(loss.scale)),
    }[loss.name]()
    return X.T @ (slope * (-1 if loss.kind == "regression" else t))
