"""E_{f ~ P_old}[p_new(f) / p_old(f)] = 1 through the real sampler, solver and density."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from support.one_round import OneRound
from taciturn.methods.admm.updates import curvature, linear_term
from taciturn.objective.local import LocalObjective
from taciturn.objective.solver.general import SolverState
from taciturn.objective.solver.many import minimise
from taciturn.rng import SecureStreams

DRAWS, D, ETA, V, RHO = 20_000, 3, 0.2, 1, 0.1
WIDE = 6.5  # standard errors: p < 1e-10 for a mean of 20,000 bounded ratios


def site(X, y):
    return LocalObjective(X, y, loss=tt.Logistic(), C=float(len(y)), regularization=RHO, sites=2)


def log_density(objective, f, b, noise, scale):
    """ln p(f) and ln det H(f), from the objective's own gradient and curvature."""
    c = curvature(ETA, V)
    e = (b - objective.gradient(f)) / c - f
    rows = objective.parts[0].rows.Z
    bend = objective.loss.curvature(f @ rows.T)
    H = np.einsum("rn,ni,nj->rij", bend * objective.parts[0].weight / c, rows, rows)
    H += (1 + objective.strong / c) * np.eye(D)
    return noise.log_density(e, scale), np.linalg.slogdet(H)[1]


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.array([1.0, -1.0, 1.0, 1.0])
    other = X.copy()
    other[0] = 0.1 * X[1]
    return site(X, y), site(other, y)


@pytest.mark.parametrize(
    ("noise", "scale"), [(tt.NormNoise(rate=1.0), 1.5), (tt.GaussianNoise(std=1.0), 2.0)]
)
def test_mean_ratio_is_one_and_the_inverted_jacobian_is_not(pair, noise, scale):
    old, new = pair
    streams = SecureStreams()
    e = np.array(
        [
            noise.sample(streams.generator(repeat=r, site=0, purpose="noise", t=1), scale, D)
            for r in range(DRAWS)
        ]
    )
    rng = np.random.default_rng(1)
    f0, heard, lam = np.repeat(rng.standard_normal((3, 1, D)), DRAWS, axis=1)
    start = np.zeros((DRAWS, D))
    b = linear_term(f0, heard, lam, eta=ETA, V=V)
    noisy = linear_term(f0, heard, lam, eta=ETA, V=V, noise=e)
    solution = minimise(
        old, curvature=curvature(ETA, V), linear=noisy, start=start, tol=1e-9, state=SolverState()
    )
    f = solution.f
    noise_old, det_old = log_density(old, f, b, noise, scale)
    noise_new, det_new = log_density(new, f, b, noise, scale)
    assert noise_old == pytest.approx(noise.log_density(e, scale), abs=1e-5)
    for sign, fits in ((1, True), (-1, False)):
        w = np.exp(noise_new - noise_old + sign * (det_new - det_old))
        away = abs(w.mean() - 1) / (w.std() / np.sqrt(DRAWS))
        assert away < WIDE if fits else away > 3 * WIDE  # inverted it is 26 and more, +-0.6 from run to run


def test_the_density_is_that_of_the_objective(pair):
    """The test's own H is the Hessian the objective reports, over 2 eta V, plus the identity."""
    old, _ = pair
    c = curvature(ETA, V)
    f = np.random.default_rng(2).standard_normal((5, D))
    _, det = log_density(old, f, np.zeros((1, D)), tt.GaussianNoise(std=1.0), 1.0)
    H = [old.hessian(row) / c + np.eye(D) for row in f]
    assert det == pytest.approx(np.linalg.slogdet(H)[1])


def test_one_round_agrees_with_the_solver(pair):
    """The noise map that the quadratures use is the one the solver inverts."""
    old, _ = pair
    c = curvature(ETA, V)
    rows = old.parts[0].rows.Z
    model = OneRound(tt.Logistic(), old.parts[0].weight / c, 1 + old.strong / c, rows, np.ones(len(rows)))
    e = np.random.default_rng(3).normal(0, 2, (20, D))
    solved = minimise(
        old, curvature=c, linear=-c * e, start=np.zeros((20, D)), tol=1e-10, state=SolverState()
    )
    assert model.solve(e) == pytest.approx(solved.f, abs=1e-8)
