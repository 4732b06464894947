"""ADMM in its original form, with w_ij and both duals: the oracle of the simplified one   [ZKL18, (4)-(7)]

With a penalty of its own for every ordered pair and round, eta_ij(t), it is the method of [song2016] that
section 3.1 of the paper starts from. It also shows why the paper leaves it: site i's update holds eta_ji,
which site j would have to reveal. `Original.revealed` lists what each site had to be asked, apart from f_j.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from taciturn import Graph, Problem
from taciturn.core.types import Array
from taciturn.objective import SolverState, minimise

Pair = tuple[int, int]
EdgePenalty = Callable[[int, int, int], float]
"""eta_ij(t) as a function of (i, j, t)."""


@dataclass(frozen=True)
class Original:
    """f (rounds, sites, d) with the multipliers at the end, and what was asked besides f."""

    f: Array
    lam_a: dict[Pair, Array]
    lam_b: dict[Pair, Array]
    revealed: frozenset[tuple[int, int]]
    """(i, j): site i needed the penalty of site j, eta_ji."""


def original_admm(
    problem: Problem,
    graph: Graph,
    *,
    penalty: float | EdgePenalty,
    rounds: int,
    dual_step: float | None = None,
    tol: float = 1e-12,
) -> Original:
    """Run (4)-(7) from f = 0; `dual_step` defaults to the penalty, which must then be one number."""
    eta = penalty if callable(penalty) else (lambda i, j, t: float(penalty))
    dual_step = float(penalty) if dual_step is None else dual_step
    pairs = [(i, j) for i in range(graph.n) for j in graph.neighbors(i)]
    zero = np.zeros((1, problem.dimension))
    w, lam_a, lam_b = ({pair: zero for pair in pairs} for _ in range(3))
    f = [zero] * graph.n
    solvers = [SolverState() for _ in range(graph.n)]
    history = []
    asked: set[Pair] = set()
    for t in range(1, rounds + 1):
        etas = {(i, j): eta(i, j, t) for i, j in pairs}
        pulls = [
            _pull(i, graph.neighbors(i), w, lam_a, lam_b, _PenaltyReader(etas, i, asked))
            for i in range(graph.n)
        ]
        f = [
            minimise(problem.site(i), curvature=kappa, linear=b, start=f[i], tol=tol, state=solvers[i]).f
            for i, (b, kappa) in enumerate(pulls)
        ]
        for i, j in pairs:
            w[i, j] = (lam_a[i, j] - lam_b[i, j]) / (2 * etas[i, j]) + (f[i] + f[j]) / 2
            lam_a[i, j] = lam_a[i, j] + dual_step * (f[i] - w[i, j])
            lam_b[i, j] = lam_b[i, j] + dual_step * (w[i, j] - f[j])
        history.append(np.concatenate(f))
    return Original(np.stack(history), lam_a, lam_b, frozenset(asked) if callable(penalty) else frozenset())


@dataclass(frozen=True)
class _PenaltyReader:
    """The penalties as site i reads them; notes each one that is another site's own."""

    etas: dict[Pair, float]
    site: int
    asked: set[Pair]

    def __getitem__(self, pair: Pair) -> float:
        owner = pair[0]
        if owner != self.site:
            self.asked.add((self.site, owner))
        return self.etas[pair]


def _pull(
    i: int,
    neighbors: tuple[int, ...],
    w: dict[Pair, Array],
    lam_a: dict[Pair, Array],
    lam_b: dict[Pair, Array],
    eta: _PenaltyReader,
) -> tuple[Array, float]:
    """(b, kappa) of (4): f_i meets w_ij through lam_a_ij and eta_ij, and w_ji through lam_b_ji and eta_ji."""
    b = sum(lam_b[j, i] - lam_a[i, j] + eta[i, j] * w[i, j] + eta[j, i] * w[j, i] for j in neighbors)
    return np.asarray(b), sum(eta[i, j] + eta[j, i] for j in neighbors)
