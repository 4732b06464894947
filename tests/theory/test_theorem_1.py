"""[ZKL18, Thm 1]: M-ADMM converges to the optimum; the cases that the proof does not cover are reported."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

import taciturn as tt
from support.problems import make_sites
from taciturn.methods.admm.theory import convergence

STARTS, RATIOS = [0.55, 0.65, 0.6, 0.55, 0.6], [1.01, 1.03, 1.1, 1.2, 1.02]
SITES = make_sites(n=5, rows=60, d=5, seed=1, spread=0.4)
PROBLEM = tt.Problem(SITES, loss=tt.Logistic(), C=10.0, regularization=1.0)
RING = tt.Graph.ring(5)


def section_5_1(cap=None):
    return [tt.Geometric(s, q, cap) for s, q in zip(STARTS, RATIOS, strict=True)]


def distance(method, rounds, problem=PROBLEM):
    run = tt.simulate(problem, RING, method, rounds=rounds, tol=1e-10)
    return np.linalg.norm(run.coef[0] - problem.optimum(), axis=1).max()


def test_capped_private_penalties_reach_the_pooled_optimum_of_scikit_learn():
    X, y = np.concatenate([X for X, _ in SITES]), np.concatenate([y for _, y in SITES])
    weights = np.concatenate([np.full(len(y), 10.0 / len(y)) for _, y in SITES])
    pooled = LogisticRegression(
        C=1.0, fit_intercept=False, tol=1e-14, solver="newton-cholesky", max_iter=1000
    )
    pooled.fit(X, y, sample_weight=weights)
    run = tt.simulate(PROBLEM, RING, tt.MADMM(section_5_1(cap=0.8), 0.5), rounds=600, tol=1e-10)
    np.testing.assert_allclose(run.coef[0], np.tile(pooled.coef_, (5, 1)), rtol=0, atol=1e-6)


def test_uncapped_it_stalls_short_of_the_optimum():
    capped = distance(tt.MADMM(section_5_1(cap=0.8), 0.5), 200)
    gentle = distance(tt.MADMM(tt.Geometric(0.5, 1.05), 0.5), 200)
    steep = distance(tt.MADMM(tt.Geometric(0.5, 1.2), 0.5), 200)
    later = distance(tt.MADMM(tt.Geometric(0.5, 1.2), 0.5), 250)
    assert capped < 1e-4
    assert steep > 1e-2 and abs(steep - later) < 1e-6, "a stall is not slow convergence"
    assert capped < gentle < steep


def test_stall_of_theory_notes_in_one_dimension():
    """Ratio 1.05 ends next to the optimum, 1.2 far from it."""
    rng = np.random.default_rng(3)
    sites = [(rng.uniform(-1, 1, (20, 1)), rng.choice([-1.0, 1.0], 20)) for _ in range(5)]
    problem = tt.Problem(sites, loss=tt.Logistic(), C=5.0, regularization=0.5)
    slow = distance(tt.MADMM(tt.Geometric(0.5, 1.05), 0.5), 300, problem)
    fast = distance(tt.MADMM(tt.Geometric(0.5, 1.2), 0.5), 300, problem)
    assert slow < fast / 3 and fast > 0.01


def test_quadratic_form_of_unequal_penalties_can_be_negative():
    """The gap in the proof: (W - theta I)(D - A) is not PSD for W = diag(0.5, 5), theta = 0.5."""
    graph = tt.Graph.path(2)
    laplacian = np.diag(graph.degrees) - graph.adjacency
    f = np.array([2.0, 1.0])
    assert f @ (np.diag([0.5, 5.0]) - 0.5 * np.eye(2)) @ laplacian @ f == -4.5


def test_the_check_says_which_hypotheses_hold():
    proven = convergence(tt.MADMM(tt.Geometric(0.5, 1.1, cap=1.0), 0.5), 5, 50)
    assert proven.proven and "proven" in str(proven)
    cases = {
        "penalty nondecreasing": tt.MADMM(tt.Table([0.6, 0.5]), 0.5),
        "penalty at least the dual step": tt.MADMM(0.4, 0.5),
        "penalty bounded": tt.MADMM(tt.Geometric(0.5, 1.1), 0.5),
        "penalty equal at all sites": tt.MADMM([0.5, 0.6, 0.6, 0.6, 0.6], 0.5),
        "dual step fixed": tt.MADMM(1.0, tt.Table([0.4, 0.5])),
        "no noise": tt.PenaltyPerturbation(0.5, 0.5, tt.NormNoise(3.0)),
    }
    for name, method in cases.items():
        failed = [h.name for h in convergence(method, 5, 50).hypotheses if not h.holds]
        assert failed == [name]


def test_steps_that_differ_between_sites_move_the_limit():
    """sum_i lam_i / theta_i stays 0: the run ends at the minimiser of sum_i O_i / theta_i."""
    rng = np.random.default_rng(5)
    sites = [(rng.uniform(-1, 1, (20, 1)), rng.choice([-1.0, 1.0], 20)) for _ in range(3)]
    problem = tt.Problem(sites, loss=tt.Logistic(), C=5.0, regularization=0.5)
    theta = [0.1, 0.3, 0.5]
    method = tt.MADMM(0.5, theta)
    run = tt.simulate(problem, tt.Graph.ring(3), method, rounds=600, tol=1e-10)
    f = run.coef[0, :1]
    assert run.consensus_gap[0, -1] < 1e-6
    slopes = np.array([problem.site(i).gradient(f)[0, 0] for i in range(3)])
    assert abs((slopes / theta).sum()) < 1e-5 and abs(slopes.sum()) > 1e-2
    assert "theta differs between sites" in str(convergence(method, 3, 10))
