"""Small counterexamples to statements of the paper, and one comparison of privacy bounds.

A reader can check the counterexamples by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.types import Array
from ...graph import Graph
from ...methods.admm.perturbations import MADMM
from ...objective.blocks import WeightedRows
from ...objective.local import Objective
from ...objective.problem import Problem
from ...objective.solver.gradient_evaluator import GradientEvaluator
from ...objective.solver.newton import newton
from ...privacy.accounting import bounds, totals
from ...runtime.simulate import simulate


def quadratic_form_of_the_proof() -> float:
    """<f, (W - theta I)(D - A) f> for two sites, W = diag(0.5, 5), theta = 0.5, f = (2, 1).

    W contains the penalties, and D - A is the graph's Laplacian. The proof of Theorem 1 concludes that this
    form is at least 0, because all eigenvalues of both matrices are at least 0.

    >>> quadratic_form_of_the_proof()
    -4.5
    """
    graph = Graph.path(2)
    laplacian = np.diag(graph.degrees.astype(float)) - graph.adjacency
    f = np.array([2.0, 1.0])
    return float(f @ (np.diag([0.5, 5.0]) - 0.5 * np.eye(2)) @ laplacian @ f)


@dataclass(frozen=True)
class UnequalSteps:
    """The limit of a run with a different dual step at every site.

    limit : the common limit of the sites.
    optimum : the minimiser of sum_i O_i, which the run should find.
    weighted : the minimiser of sum_i O_i / theta_i.
    disagreement : the largest distance between two sites at the end.
    """

    limit: float
    optimum: float
    weighted: float
    disagreement: float


def unequal_dual_steps(rounds: int = 600) -> UnequalSteps:
    """Three sites, one feature, theta = (0.1, 0.3, 0.5), eta = 0.5: the sites agree, but not on the optimum.

    lam_i / theta_i is a sum of differences between site i and its neighbours. These differences cancel in the
    sum over the sites, so sum_i lam_i / theta_i = 0 in every round. In the limit O_i'(f) + 2 lam_i = 0, hence
    sum_i O_i'(f) / theta_i = 0.
    """
    theta = (0.1, 0.3, 0.5)
    X = np.ones((10, 1))
    shares = (9, 5, 2)  # the number of records with the label +1 at each site, which has ten records
    sites = [(X, np.where(np.arange(10) < share, 1.0, -1.0)) for share in shares]
    problem = Problem(sites, C=5.0, regularization=0.3)
    run = simulate(problem, Graph.ring(3), MADMM(0.5, list(theta)), rounds=rounds, tol=1e-10)
    f = run.coef[0, :, 0]
    return UnequalSteps(
        limit=float(f.mean()),
        optimum=float(problem.optimum()[0]),
        weighted=float(weighted_optimum(problem, [1 / step for step in theta])[0]),
        disagreement=float(np.ptp(f)),
    )


def weighted_optimum(problem: Problem, weights: list[float]) -> Array:
    """argmin sum_i w_i O_i, (d,)."""
    parts = tuple(
        WeightedRows(part.rows, weight * part.weight)
        for i, weight in enumerate(weights)
        for part in problem.site(i).parts
    )
    rho = problem.regularization * sum(weights) / problem.n
    objective = Objective(parts, loss=problem.loss, rho=rho, regularizer=problem.regularizer)
    zero = np.zeros((1, problem.dimension))
    return np.asarray(newton(GradientEvaluator(objective, 0.0, zero), zero, 0.0)[0])


def constant_of_theorem_3() -> dict[str, float]:
    """The privacy cost of one run by Theorem 3, by our pure bound, and by Renyi divergence at delta.

    The run has C = 1750, B = 9044, V = 2, eta = 0.5, alpha = 3, d = 105, T = 100, rho -> 0, delta = 1e-5.
    """
    C, B, V, eta, alpha, d, T = 1750.0, 9044.0, 2.0, 0.5, 3.0, 105, 100
    k = bounds.sample_weight(C, eta, V, B)
    pure = float(bounds.pure_logistic(k, 1.0, alpha))
    total = totals.renyi_norm_total(
        bounds.ORDERS,
        np.full(T, bounds.displacement(k, 1.0)),
        np.full(T, alpha),
        d,
        np.full(T, bounds.bend(k, 1.0, 0.25)),
        np.full(T, pure),
    )
    renyi = float(bounds.to_epsilon(bounds.ORDERS, total, 1e-5)[0])
    paper = T * float(bounds.paper_epsilon(C, eta, V, B, 0.25, alpha))
    return {"paper": paper, "pure": T * pure, "renyi": renyi}
