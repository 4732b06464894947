"""[ZKL18, Thm 2]: each round contracts ||Z - Z*||^2_J by at least 1 + delta(t)."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from taciturn.methods.admm.theory import rate

SITES = make_sites(n=5, rows=60, d=4, seed=2, spread=0.3)
PROBLEM = tt.Problem(SITES, loss=tt.Logistic(), C=8.0, regularization=4.0)


def contractions(problem, graph, method, rounds):
    """||Z(t-1) - Z*||^2_J(t) / ||Z(t) - Z*||^2_J(t) from the run's released vectors."""
    tables = method.tables(graph.n, rounds)
    theta = tables.theta[0, 0]
    D, A = np.diag(graph.degrees.astype(float)), graph.adjacency
    values, vectors = np.linalg.eigh(D - A)
    values[0] = 0.0
    root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    optimum = problem.optimum(tol=1e-12)
    gradients = np.stack([problem.site(i).gradient(optimum[None])[0] for i in range(graph.n)])
    Y_star = -np.linalg.pinv(root) @ gradients
    f = tt.simulate(problem, graph, method, rounds=rounds, tol=1e-12, history=True).history[:, 0]
    Y, previous, ratios = np.zeros_like(Y_star), np.zeros_like(f[0]), []

    def squared(Y, f, eta):
        gap = f - optimum
        return np.sum((Y - Y_star) ** 2) / theta + np.sum(gap * (eta * (D + A) @ gap))

    for t in range(rounds):
        eta = tables.eta[0, t]
        before = squared(Y, previous, eta)
        Y, previous = Y + theta * root @ f[t], f[t]
        ratios.append(before / squared(Y, f[t], eta))
    return np.array(ratios)


@pytest.mark.parametrize("graph", [tt.Graph.ring(5), tt.Graph.star(5), tt.Graph.complete(5)], ids=repr)
@pytest.mark.parametrize("penalty", [0.5, tt.Geometric(0.5, 1.05, cap=2.0)], ids=["fixed", "growing"])
def test_measured_contraction_is_at_least_the_bound(graph, penalty):
    method = tt.MADMM(penalty, 0.5)
    measured = contractions(PROBLEM, graph, method, 25)
    for t in (1, 5, 25):
        bound = rate(PROBLEM, graph, method, t)
        assert bound.covered and bound.delta > 0 and bound.mu > 1
        assert measured[t - 1] >= 1 + bound.delta


def test_closed_form_is_below_the_largest_delta():
    for eta in (0.5, 0.7, 3.0):
        bound = rate(PROBLEM, tt.Graph.ring(5), tt.MADMM(eta, 0.5), 1)
        assert 0 < bound.closed_form <= bound.delta * (1 + 1e-9)


def test_the_printed_closed_form_is_no_lower_bound_once_the_penalty_exceeds_the_dual_step():
    """(W - theta I)(D - A) maps the all-ones vector to 0: its least eigenvalue is 0, not sigma_min."""
    same = rate(PROBLEM, tt.Graph.ring(5), tt.MADMM(0.5, 0.5), 1)
    assert same.as_printed == pytest.approx(same.closed_form)
    above = rate(PROBLEM, tt.Graph.ring(5), tt.MADMM(0.6, 0.5), 1)
    assert above.as_printed > above.delta


def test_growing_penalties_lower_the_rate():
    deltas = [rate(PROBLEM, tt.Graph.ring(5), tt.MADMM(eta, 0.5), 1).delta for eta in (0.5, 1.0, 2.0, 4.0)]
    assert deltas == sorted(deltas, reverse=True) and deltas[0] > deltas[-1]


def test_growth_slows_the_run_down_in_the_order_of_figure_1b():
    graph, optimum = tt.Graph.ring(5), PROBLEM.optimum()
    gaps = []
    for ratio in (1.0, 1.05, 1.2):
        run = tt.simulate(PROBLEM, graph, tt.MADMM(tt.Geometric(0.5, ratio), 0.5), rounds=40, tol=1e-10)
        gaps.append(np.linalg.norm(run.coef[0] - optimum, axis=1).max())
    assert gaps[0] < gaps[1] < gaps[2]


def test_unequal_penalties_are_not_covered():
    assert not rate(PROBLEM, tt.Graph.ring(5), tt.MADMM([0.5, 0.6, 0.7, 0.8, 0.9], 0.5), 1).covered
