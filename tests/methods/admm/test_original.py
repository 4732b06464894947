"""The original form of ADMM is the oracle of the simplified one."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from support.original_admm import original_admm
from support.problems import make_sites


@pytest.mark.parametrize("graph", [tt.Graph.ring(5), tt.Graph.star(5), tt.Graph.complete(5)], ids=repr)
def test_original_and_simplified_agree_over_50_rounds(problem, graph):
    original = original_admm(problem, graph, penalty=0.5, rounds=50, tol=1e-12)
    run = tt.simulate(problem, graph, tt.ADMM(0.5), rounds=50, tol=1e-12, history=True)
    np.testing.assert_allclose(run.history[:, 0], original.f, rtol=0, atol=1e-10)


def test_both_duals_are_equal_and_antisymmetric(problem, ring):
    original = original_admm(problem, ring, penalty=0.5, rounds=20)
    for (i, j), lam in original.lam_a.items():
        np.testing.assert_allclose(lam, original.lam_b[i, j], atol=1e-11)
        np.testing.assert_allclose(lam, -original.lam_a[j, i], atol=1e-11)


def test_penalties_per_edge_converge_and_must_be_revealed(ring):
    problem = tt.Problem(make_sites(), loss=tt.Logistic(), C=20.0, regularization=0.5)
    penalty = lambda i, j, t: min(0.5 + 0.1 * i + 0.01 * j + 0.01 * t, 2.0)  # noqa: E731
    original = original_admm(problem, ring, penalty=penalty, rounds=400, dual_step=0.5)
    np.testing.assert_allclose(original.f[-1], np.tile(problem.optimum(), (5, 1)), atol=1e-6)
    assert original.revealed == {(i, j) for i in range(5) for j in ring.neighbors(i)}


def test_per_edge_penalty_depends_on_the_neighbours_penalty(problem, ring):
    """f_i(1) moves when only eta_ji changes: site j would have to reveal it."""
    base = original_admm(problem, ring, penalty=lambda i, j, t: 1.0, rounds=2, dual_step=0.5)
    told = original_admm(
        problem, ring, penalty=lambda i, j, t: 3.0 if (i, j) == (1, 0) else 1.0, rounds=2, dual_step=0.5
    )
    assert np.abs(base.f[:, 0] - told.f[:, 0]).max() > 1e-6
