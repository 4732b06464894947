"""What the paper [ZKL18] proves about the convergence of a run: when it converges, and how fast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...core.errors import ParameterError
from ...core.types import Array
from ...graph import Graph
from ...objective.problem import Problem
from .tables import HasTables, Tables

_LARGEST = 3000  # the most sites for `rate`, which computes eigenvalues of a dense (sites, sites) matrix


@dataclass(frozen=True)
class Hypothesis:
    """One condition of Theorem 1, whether it holds for this run, and a detail that explains the result."""

    name: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class Convergence:
    """Which hypotheses of Theorem 1 hold for one run [ZKL18, Thm 1]."""

    hypotheses: tuple[Hypothesis, ...]

    @property
    def proven(self) -> bool:
        """Whether convergence to the optimum is proven. A run without a proof may still converge."""
        return all(hypothesis.holds for hypothesis in self.hypotheses)

    def __str__(self) -> str:
        lines = [f"{'holds' if h.holds else 'FAILS'}  {h.name}: {h.detail}" for h in self.hypotheses]
        verdict = "proven" if self.proven else "not proven (it may still be observed)"
        return "\n".join([*lines, f"convergence to the optimum: {verdict}"])


def convergence(method: HasTables, sites: int, rounds: int) -> Convergence:
    """Which hypotheses of Theorem 1 hold for this run. The proof also needs equal penalties at all sites."""
    tables = method.tables(sites, rounds)
    return Convergence(tuple(check(tables) for check in _CHECKS))


def check_theorem_1(tables: Tables) -> None:
    """Raise unless the run meets the two conditions that all theorems of the paper need."""
    for hypothesis in (_nondecreasing(tables), _above_dual_step(tables)):
        if not hypothesis.holds:
            name, words = hypothesis.name.split(" ", 1)
            raise ParameterError(
                f"`{name}` must be {words}; {hypothesis.detail}. "
                "Theorems 1 to 3 of the paper need this; `strict=False` turns off this check."
            )


def _nondecreasing(tables: Tables) -> Hypothesis:
    falls, detail = np.argwhere(np.diff(tables.eta, axis=1) < 0), "eta_i(t+1) >= eta_i(t) at every site"
    if len(falls):
        i, t = falls[0]
        now, then = tables.eta[i, t + 1], tables.eta[i, t]
        detail = f"site {i}: {now:g} at t={t + 2} after {then:g} at t={t + 1}"
    return Hypothesis("penalty nondecreasing", not len(falls), detail)


def _above_dual_step(tables: Tables) -> Hypothesis:
    below, detail = np.argwhere(tables.eta < tables.theta), "eta_i(t) >= theta > 0"
    if len(below):
        i, t = below[0]
        detail = f"site {i}: eta = {tables.eta[i, t]:g} < theta = {tables.theta[i, t]:g} at t={t + 1}"
    return Hypothesis("penalty at least the dual step", not len(below), detail)


def _bounded(tables: Tables) -> Hypothesis:
    grows = [i for i, one in enumerate(tables.penalties) if not one.bounded]
    detail = "sup_t eta_i(t) is finite"
    if grows:
        detail = (
            f"the penalty of site {grows[0]} grows without bound: the run can stall at a consensus that is "
            "not the optimum; give the schedule a cap"
        )
    return Hypothesis("penalty bounded", not grows, detail)


def _equal_penalties(tables: Tables) -> Hypothesis:
    equal = bool((tables.eta == tables.eta[0]).all())
    unproven = (
        "the paper's proof assumes that (W - theta I)(D - A) is positive semidefinite; if "
        "penalties are unequal, this may be false, and then no theorem proves convergence"
    )
    detail = "W(t) = eta(t) I, as the proof needs" if equal else unproven
    return Hypothesis("penalty equal at all sites", equal, detail)


def _fixed_dual_step(tables: Tables) -> Hypothesis:
    fixed = bool((tables.theta == tables.theta[0, 0]).all())
    detail = f"theta = {tables.theta[0, 0]:g} for all sites and rounds"
    if not fixed and (tables.theta == tables.theta[0]).all():
        detail = "theta varies over rounds; for this case the paper shows convergence only by experiment"
    elif not fixed:
        detail = (
            "theta differs between sites: sum_i lam_i / theta_i stays 0, so the run ends at the minimiser of "
            "sum_i O_i / theta_i, which is not the optimum"
        )
    return Hypothesis("dual step fixed", fixed, detail)


def _noiseless(tables: Tables) -> Hypothesis:
    settles = "with noise the iterates settle around the optimum, not on it"
    detail = settles if tables.private else "the theorem is about M-ADMM without perturbation"
    return Hypothesis("no noise", not tables.private, detail)


_CHECKS = (_nondecreasing, _above_dual_step, _bounded, _equal_penalties, _fixed_dual_step, _noiseless)


@dataclass(frozen=True)
class Rate:
    """Theorem 2 for one round: (1 + delta) ||Z(t) - Z*||^2_J(t) <= ||Z(t-1) - Z*||^2_J(t)   [ZKL18, Thm 2]

    delta: the largest delta that meets both conditions of the theorem, maximised over mu > 1. The paper's
        delta and mu are not privacy parameters.
    closed_form: the lower bound on delta that follows from a closed formula, maximised over mu.
    as_printed: the paper's closed form. It adds the smallest NONZERO singular value of (W - theta I)(D - A),
        but that matrix maps the all-ones vector to zero. So if eta > theta, `as_printed` can exceed `delta`,
        and is then not a lower bound.
    covered: whether the theorem covers these numbers. It does not if sites have unequal penalties.
    """

    delta: float
    mu: float
    closed_form: float
    as_printed: float
    covered: bool


def rate(problem: Problem, graph: Graph, method: HasTables, t: int) -> Rate:
    """Theorem 2's rate in round t.

    m_i is the strong convexity of the objective of site i, from its regularizer alone (rho/N for L2). M_i is
    the smoothness of the objective, from the loss and the largest eigenvalue of the site's data.
    """
    if graph.n > _LARGEST:
        raise ParameterError(f"`graph` must have at most {_LARGEST} sites for Theorem 2; got {graph.n}.")
    tables = method.tables(graph.n, t)
    m = np.array([problem.site(i).strong for i in range(graph.n)])
    M = np.array([problem.site(i).smoothness for i in range(graph.n)])
    return _rate(graph, tables.eta[:, t - 1], float(tables.theta[:, t - 1].max()), m, M)


def _rate(graph: Graph, eta: Array, theta: float, m: Array, M: Array) -> Rate:
    from scipy.linalg import eigh  # slow to load, and no run needs it

    A, D = graph.adjacency, np.diag(graph.degrees.astype(float))
    W = np.diag(eta)
    gap = float(np.linalg.eigvalsh(D - A)[1])  # the smallest nonzero eigenvalue, since the graph is connected
    tilde = float(np.linalg.norm(W @ (D + A), 2))
    excess = (W - theta * np.eye(graph.n)) @ (D - A)
    bars = np.linalg.svd(excess, compute_uv=False)
    bar_max = float(bars[0])
    nonzero = bars[bars > 1e-12 * max(bar_max, 1e-300)]
    bar_min = float(nonzero[-1]) if bar_max > 0 else 0.0
    right = 2 * _symmetric(excess) + 2 * np.diag(m)
    penalty = _symmetric(W @ (D + A))

    def first(mu: float) -> float:
        return theta * gap / (mu**2 * tilde)

    def exact(mu: float) -> float:
        left = np.diag((mu * bar_max**2 + mu**2 * M**2) / (theta * gap * (mu - 1))) + penalty
        return min(first(mu), float(eigh(right, left, eigvals_only=True, subset_by_index=[0, 0])[0]))

    def closed(mu: float, bonus: float) -> float:
        below = (mu**2 * M.max() ** 2 + mu * bar_max**2) / (theta * gap * (mu - 1)) + tilde
        return float(min(first(mu), (2 * m.min() + 2 * bonus) / below))

    mu, delta = _largest(exact)
    return Rate(
        delta=delta,
        mu=mu,
        closed_form=_largest(lambda mu: closed(mu, 0.0))[1],
        as_printed=_largest(lambda mu: closed(mu, bar_min))[1],
        covered=bool((eta == eta[0]).all()),
    )


def _symmetric(matrix: Array) -> Array:
    """The symmetric part, which alone determines the quadratic form."""
    return 0.5 * (matrix + matrix.T)


def _largest(function: Callable[[float], float]) -> tuple[float, float]:
    """(mu, value) at the maximum over mu > 1 of a function with one peak; searched over log(mu - 1)."""
    from scipy.optimize import minimize_scalar  # slow to load, and no run needs it

    grid = np.linspace(-12.0, 12.0, 49)
    heights = [function(1 + np.exp(s)) for s in grid]
    k = int(np.argmax(heights))
    low, high = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
    best = minimize_scalar(lambda s: -function(1 + np.exp(s)), bounds=(low, high), method="bounded")
    s = float(best.x) if -best.fun > heights[k] else float(grid[k])
    return 1 + float(np.exp(s)), float(function(1 + np.exp(s)))
