"""Minimise the objective of one site: a compiled kernel for a small site, the general solver for the others.

The minimised function phi is m-strongly convex, m = rho/N + curvature, so ||f - f*|| <= ||grad phi(f)|| / m.
Both solvers make this bound at most `tol`; the bound includes the rounding error of the gradient.
"""

from __future__ import annotations

import numpy as np

from ...core.types import Array
from ..local import Objective
from .general import Solution, SolverState, check_arguments, minimise_general
from .small.packs import pack
from .small.sites import is_small


def minimise(
    objective: Objective, *, curvature: float, linear: Array, start: Array, tol: float, state: SolverState
) -> Solution:
    """argmin_f O(f) + (curvature/2) ||f||^2 - <linear, f> for every row of `linear`, within `tol`.

    The solver is globally convergent. It raises `NotConverged` if floats cannot certify `tol`, so a returned
    solution is always within `tol`. The same inputs and state give the same bits, however many other threads
    run. The result of a repeat of a small site depends neither on the other repeats nor on the state.
    """
    if not is_small(objective):
        return minimise_general(
            objective, curvature=curvature, linear=linear, start=start, tol=tol, state=state
        )
    check_arguments(objective, curvature, linear, start, tol)
    (f,), (bound,) = pack([objective]).minimise(np.array([curvature]), linear[None], start[None], tol)
    passes = finish(objective, curvature, linear, start, tol, f, bound)
    return Solution(f, bound / (objective.strong + curvature), bound, passes, 0)


def finish(
    objective: Objective, curvature: float, linear: Array, start: Array, tol: float, f: Array, bound: Array
) -> int:
    """Solve, with the general solver, the repeats that the kernel could not certify; f and bound are updated.

    Return the number of passes of the general solver over the rows.
    """
    passes = 0
    for r in np.flatnonzero(~(bound <= (objective.strong + curvature) * tol)):
        one = slice(r, r + 1)
        solution = minimise_general(
            objective,
            curvature=curvature,
            linear=linear[one],
            start=start[one],
            tol=tol,
            state=SolverState(),
        )
        f[one], bound[one] = solution.f, solution.gradient_norm
        passes += solution.passes
    return passes
