"""The exact minimiser: argmin_f O(f) + (curvature/2) ||f||^2 - <linear, f>, for all repeats at once.

phi is m-strongly convex, m = rho/N + curvature, so ||f - f*|| <= ||grad phi(f)|| / m. `tol` bounds the right
side, the error of evaluating the gradient in floats included.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..errors import NotConverged, ParameterError
from .lbfgs import lbfgs, norms
from .local import Objective
from .newton import newton
from .passes import Passes
from .preconditioner import LARGEST_MATRIX, Preconditioner
from .rounding import a_priori_error

Array = NDArray[np.float64]


@dataclass
class SolverState:
    """What a site keeps between solves: its preconditioner. Fresh state changes results within `tol` only."""

    preconditioner: Preconditioner = field(default_factory=Preconditioner)


@dataclass(frozen=True, eq=False)
class Solution:
    """The minimisers, one row per repeat, and what is certain about them."""

    f: Array  # (repeats, d)
    distance: Array  # (repeats,): f is at most this far from the exact minimiser
    gradient_norm: Array  # (repeats,): an upper bound on the true gradient's norm at f
    passes: int  # over the rows
    rebuilds: int  # of the preconditioner


def minimise(
    objective: Objective, *, curvature: float, linear: Array, start: Array, tol: float, state: SolverState
) -> Solution:
    """argmin_f O(f) + (curvature/2) ||f||^2 - <linear, f> for every row of `linear`, within `tol`.

    Globally convergent; raises `NotConverged` if floats cannot certify `tol`, so a returned solution is
    always within it. The same inputs and state give the same bits, on any number of threads around it; a
    different number of repeats may change the last bits, since BLAS then sums in another order.
    """
    _check(objective, curvature, linear, start, tol)
    passes = Passes(objective, curvature, linear)
    m = passes.strong
    before = state.preconditioner.rebuilds
    with np.errstate(over="ignore", invalid="ignore"):
        slack = a_priori_error(passes, start)
        target = np.maximum(m * tol - 2.0 * slack, 0.25 * m * tol)
        most = 200 if objective.dimension <= LARGEST_MATRIX else 1000
        f, g = lbfgs(passes, start.copy(), target, state.preconditioner, most)
        bound = norms(g) + a_priori_error(passes, f)
        missed = np.flatnonzero(~(bound <= m * tol))
        for r in missed:
            f[r], bound[r] = _alone(objective, curvature, linear[r : r + 1], m * tol)
    if not np.all(bound <= m * tol):
        reached = float(np.max(bound)) / m
        raise NotConverged(
            f"`tol` = {tol:g} is below what floats can certify here; {reached:.2g} was reached, so ask for"
            f" tol >= {2 * reached:.1g}, or a larger penalty. Nothing was released."
        )
    return Solution(f, bound / m, bound, passes.count, state.preconditioner.rebuilds - before)


def _alone(objective: Objective, curvature: float, linear: Array, target: float) -> tuple[Array, float]:
    """One repeat by damped Newton from zero."""
    passes = Passes(objective, curvature, linear)
    f = newton(passes, np.zeros_like(linear), 0.25 * target)
    bound = norms(passes.gradient(f)) + a_priori_error(passes, f)
    return f[0], float(bound[0])


def _check(objective: Objective, curvature: float, linear: Array, start: Array, tol: float) -> None:
    checks.nonnegative("curvature", curvature)
    checks.positive("tol", tol)
    if objective.strong + curvature <= 0.0:
        raise ParameterError(
            "`curvature` must be above 0 where nothing else makes the objective convex; got 0."
        )
    shape = linear.shape
    if len(shape) != 2 or shape[0] == 0 or shape[1] != objective.dimension or start.shape != shape:
        raise ParameterError(
            f"`linear` and `start` must have shape (repeats, {objective.dimension});"
            f" got {shape} and {start.shape}."
        )
    if not (np.all(np.isfinite(linear)) and np.all(np.isfinite(start))):
        raise ParameterError("`linear` and `start` must be finite; a message or a penalty overflowed.")
