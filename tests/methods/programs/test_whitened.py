"""Whitened descent: the bound on a site's share, the public half, and the certificate."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import sparse

import taciturn as tt
from taciturn.core.errors import ParameterError
from taciturn.kernels.clipped_sums import clipped_slope
from taciturn.methods.base import Network
from taciturn.methods.programs.coordinates import Coordinates, Strength
from taciturn.methods.programs.descent_rows import WhitenedShare
from taciturn.methods.programs.masked_descent import MaskedDescent, PublicFacts
from taciturn.methods.sums import sums
from taciturn.methods.sums.sums import to_integers
from taciturn.objective.local import LocalObjective
from taciturn.privacy.accounting import sensitivity as sens
from taciturn.privacy.accounting.gaussian import gaussian_mu
from taciturn.privacy.sums import CLIPPED, MOMENTS, WHITENED, SumTerms
from taciturn.rng import SeededStreams

D = 6


def made_rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) @ np.diag([1, 0.5, 0.1, 0.05, 0.02, 1.0])
    X[:, 1] += X[:, 0]
    X = X / np.maximum(1.0, np.linalg.norm(X[:, :-1], axis=1, keepdims=True)) * math.sqrt(0.75)
    X[:, -1] = 0.5
    f = np.array([1.0, -2.0, 8.0, 4.0, -9.0, 0.5])
    y = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-X @ f)), 1.0, -1.0)
    return X, y


def tables_of(n=3000, epsilon=10.0, rounds=12, **options):
    facts = PublicFacts(5, n, n // 5, D, tt.Logistic(), 0.0)
    method = MaskedDescent(epsilon=epsilon, whiten=True, constant=0.5, **options)
    return method.tables(facts, rounds)


def share(X, y, total):
    rows = LocalObjective(X, y, loss=tt.Logistic(), C=1.0, regularization=1e-9, sites=1)
    return WhitenedShare(rows, total, None)


def walk(tables, half, seed=1):
    """The states of a run in which one site holds all rows."""
    program, rng = tables.program, np.random.default_rng(seed)
    states = [program.start(1)]
    for facts, noise in zip(tables.sums, program.noise, strict=True):
        told = half.integers(program.query(states[-1]), facts) * facts.grid
        states.append(program.advance(states[-1], told + noise * rng.normal(size=told.shape)))
    return states


def one_row(x, y=1.0):
    """A share that one unit alone makes, n = 1."""
    return share(np.array([x]), np.array([y]), 1)


@pytest.mark.parametrize("t", [0, 1, 2, 3, 11])
def test_one_unit_never_moves_a_sum_by_more_than_its_sensitivity(t):
    """S = sqrt 2 / n for moments and 2 / n for gradients, whatever the rows and the coordinates."""
    X, y = made_rows()
    tables, rng = tables_of(), np.random.default_rng(t)
    state = walk(tables, share(X, y, len(X)))[t]
    query, largest = tables.program.query(state), 0.0
    for _ in range(300):
        rows = rng.normal(size=(2, D)) * 10.0 ** rng.uniform(-4, 0, size=(2, 1))
        rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
        if query.points is not None and rng.uniform() < 0.5:  # a long row on the wrong side of the model
            rows = np.stack([query.points[0], -query.points[0]]) / max(1.0, np.linalg.norm(query.points[0]))
        a, b = (float_share(one_row(x, s), query) for x, s in zip(rows, rng.choice([-1, 1], 2), strict=True))
        largest = max(largest, float(np.linalg.norm(a - b)))
    bound = len(X) * tables.sums[t].sensitivity
    assert 0.5 * bound < largest <= bound * (1 + 1e-9)


def float_share(half, query):
    at = query.coordinates[0]
    if query.points is None:
        return half.moments(at)
    return half.gradient(at, query.points[0], half._limits(at, 0))


def test_rows_of_a_person_count_at_most_as_one():
    X, y = made_rows()
    tables = tables_of()
    for t in (1, 4):
        query = tables.program.query(walk(tables, share(X, y, len(X)))[t])
        options = {"loss": tt.Logistic(), "C": 1.0, "regularization": 1e-9, "sites": 1}
        rows = LocalObjective(X[:50], y[:50], weights=np.full(50, 0.02), count=1, **options)
        assert np.linalg.norm(float_share(WhitenedShare(rows, 1, None), query)) <= 1 + 1e-12


def test_clipped_slopes_vanish_on_average_where_the_odds_are_true():
    u = np.linspace(-5, 5, 41)
    p = 1 / (1 + np.exp(-u))
    for limit in (0.7, 0.2, 1.0):
        up, down = (np.array([clipped_slope(z, limit) for z in side]) for side in (u, -u))
        assert np.all(up <= limit)
        np.testing.assert_allclose(p * up, (1 - p) * down)


def test_sparse_rows_add_what_dense_ones_do():
    X, y = made_rows(500)
    X[np.abs(X) < 0.1] = 0.0
    dense, thin = share(X, y, 500), share(sparse.csr_array(X), y, 500)
    query = tables_of().program.query(walk(tables_of(), share(*made_rows(), 3000))[5])
    np.testing.assert_allclose(float_share(thin, query), float_share(dense, query), rtol=0, atol=1e-14)


@pytest.mark.parametrize("t", [0, 1, 2, 3, 11])
def test_a_share_of_all_rows_is_the_sum_of_the_shares_of_its_parts(t):
    """A share uses the released coordinates; coordinates from its own moments depend on all rows."""
    X, y = made_rows()
    tables, n = tables_of(), len(X)
    query = tables.program.query(walk(tables, share(X, y, n))[t])
    whole, first, rest = (
        share(X[some], y[some], n).integers(query, tables.sums[t])
        for some in (slice(None), slice(1000), slice(1000, None))
    )
    stray = tables.sums[t].stray / tables.sums[t].grid  # the charged floating-point error, in grid steps
    assert np.abs(whole - first - rest).max() <= 2.0 + 3.0 * stray
    assert np.abs(whole).max() > 1000.0 * (2.0 + 3.0 * stray)


def test_coordinates_are_computed_from_released_totals_only():
    """The totals alone, without any row, give the same coordinates, points and model, bit by bit."""
    X, y = made_rows()
    parts = np.array_split(np.arange(len(X)), 5)
    problem = tt.Problem([(X[p], y[p]) for p in parts], loss=tt.Logistic(), C=1.0, regularization=1e-9)
    method = MaskedDescent(epsilon=10.0, whiten=True, constant=0.5)
    run = tt.simulate(problem, tt.Graph.complete(5), method, rounds=12, seed=3)
    tables = method.prepare(Network.of(problem, tt.Graph.complete(5)), 12).tables
    state, halves = tables.program.start(1), [share(X[p], y[p], len(X)) for p in parts]
    for t, facts in enumerate(tables.sums, start=1):
        query, total = tables.program.query(state), np.zeros((1, facts.length), dtype=np.int64)
        for site, half in enumerate(halves):
            shape = (1, facts.length)
            total += half.integers(query, facts)
            total += sums.draw(SeededStreams(3), facts.std, shape, site=site, t=t)
        state = tables.program.advance(state, total * facts.grid)
    np.testing.assert_array_equal(run.coef[0, 0], state.f[0])


@pytest.mark.parametrize("order", [0, 1])
def test_floating_point_errors_are_below_what_is_charged(order):
    X, y = made_rows()
    tables = tables_of()
    states = walk(tables, share(X, y, len(X)))
    turned = np.random.default_rng(order).permutation(len(X))
    for t in (1, 2, 5):
        query = tables.program.query(states[t])
        a, b = (float_share(share(X[p], y[p], len(X)), query) for p in (np.arange(len(X)), turned))
        exact = exact_share(X[turned], y[turned], query)
        assert np.linalg.norm(a - b) <= tables.sums[t].stray
        assert np.linalg.norm(b - exact) <= tables.sums[t].stray


def exact_share(X, y, query):
    """The same in long doubles."""
    at, Z = query.coordinates[0], (X * y[:, None]).astype(np.longdouble)
    W = at.W.astype(np.longdouble)
    rows = Z @ W
    r = np.sqrt(np.sum(rows**2, axis=1))
    if query.points is None:
        omega = np.minimum(1, np.minimum(2 * at.q / r, at.cap / r**2))
        gram = (rows * omega[:, None]).T @ rows / at.cap / len(X)
        upper = np.triu(gram, 1) * np.sqrt(np.longdouble(2)) + np.diag(np.diagonal(gram))
        return upper[np.triu_indices(D)]
    z = Z @ query.points[0].astype(np.longdouble)
    psi = 1 / (1 + np.exp(z)) * np.minimum(1, np.minimum(1, at.q / r) * (1 + np.exp(-abs(z))))
    return -(psi @ rows) / at.q / len(X)


def test_the_norm_of_the_coordinates_stays_within_its_public_bound():
    X, y = made_rows()
    for epsilon in (0.5, 5.0, 50.0):
        tables = tables_of(epsilon=epsilon)
        state = walk(tables, share(X, y, len(X)))[-1]
        moments = tables.program.moments
        bound = sens.stretch(D, tables.program.noise[: moments - 1])
        assert np.linalg.norm(state.coordinates[0].W, 2) <= bound * (1 + 1e-9)


def test_certificates_derive_the_bounds_again():
    tables = tables_of()
    terms = SumTerms(tables.program.loss, 3000, 600, D, 1.0, 5)
    terms.check(tables.sums)
    parts = [entry.part for entry in tables.sums]
    assert parts[:4] == [MOMENTS, WHITENED, WHITENED, CLIPPED]
    for t, name in ((1, "sensitivity"), (3, "sensitivity"), (1, "stray"), (3, "stray")):
        less = list(tables.sums)
        less[t] = dataclasses.replace(less[t], **{name: 0.9 * getattr(less[t], name)})
        with pytest.raises(ParameterError, match=name):
            terms.check(less)
    with pytest.raises(ParameterError, match=r"sums of moments .* must come before it"):
        terms.check([dataclasses.replace(entry, t=t) for t, entry in enumerate(tables.sums[3:], 1)])


def test_all_sums_together_cost_the_budget():
    """Moments and gradients are both charged: omitting either one fails this test."""
    tables = tables_of(epsilon=1.0, colluding=1)
    each = [((s.sensitivity + 2 * s.stray) / s.grid + math.sqrt(s.length)) / s.std for s in tables.sums]
    mu = math.sqrt(sum(x * x for x in each) / 4)
    assert mu == pytest.approx(float(gaussian_mu(1.0, 1e-5)), rel=1e-6)
    assert sum(x * x for x in each[: tables.program.moments]) > 0.03 * 4 * mu * mu


def test_with_little_noise_it_finds_the_optimum():
    X, y = made_rows(20_000)
    states = walk(tables_of(n=20_000, epsilon=100.0, rounds=63), share(X, y, len(X)))
    Z = X * y[:, None]
    f = np.zeros(D)
    for _ in range(30):
        p = 1 / (1 + np.exp(Z @ f))
        f = f + np.linalg.solve((Z * (p * (1 - p))[:, None]).T @ Z, p @ Z)

    def loss(g):
        return float(np.mean(np.logaddexp(0, -Z @ g)))

    assert loss(states[-1].f[0]) - loss(f) < 2e-3
    assert loss(np.zeros(D)) - loss(f) > 0.05


def test_model_stays_finite_whatever_a_hostile_site_adds():
    tables = tables_of()
    for seed in range(20):
        rng, state = np.random.default_rng(seed), tables.program.start(2)
        for facts in tables.sums:
            released = 10.0 ** rng.uniform(-6, 7) * rng.normal(size=(2, facts.length))
            state = tables.program.advance(state, released)
        assert np.all(np.isfinite(state.f)) and np.all(np.linalg.norm(state.y, axis=1) <= sens.REACH + 1e-6)


def test_pure_noise_gives_no_direction_more_weight():
    strength = Strength(1000, 0.3, 1.0)
    noise, rng = 0.05, np.random.default_rng(0)
    released = noise * rng.normal(size=D * (D + 1) // 2)
    found = Coordinates.of_rows(D).after(released, noise, strength, None, last=False)
    assert found.K <= D and found.cap >= sens.CAP_LEAST and found.q == found.kappa * math.sqrt(found.K)


def test_values_fit_the_grid():
    X, y = made_rows()
    tables = tables_of()
    query = tables.program.query(tables.program.start(3))
    values = share(X, y, len(X)).integers(query, tables.sums[0])
    assert values.shape == (1, D * (D + 1) // 2)  # one for all repeats, which ask the same
    assert np.array_equal(values, to_integers(values * tables.sums[0].grid, tables.sums[0].grid))
