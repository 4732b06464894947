"""The general minimiser: argmin_f O(f) + (curvature/2) ||f||^2 - <linear, f>, for all repeats at once.

O is the objective of a site (see local.py). A repeat is one of several independent runs, each with its own
noise. The minimised function phi is strongly convex with a constant m, so a model f has at most the distance
||grad phi(f)|| / m to the exact minimiser. The solver certifies `tol`: it makes this bound at most `tol`. The
bound includes the rounding error of the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...core import checks
from ...core.errors import NotConverged, ParameterError
from ...core.types import Array
from ..local import Objective
from .careful import CarefulGradientEvaluator
from .continuation import solve_by_stages
from .gradient_evaluator import GradientEvaluator
from .lbfgs import lbfgs, norms
from .newton import newton
from .preconditioner import LARGEST_MATRIX, Preconditioner

_NEAR = 8  # the largest number of Newton steps that start from the result of L-BFGS
_UP = 1 + 1e-9  # covers the relative rounding errors of a norm and of m, for d up to millions


@dataclass
class SolverState:
    """Results of earlier solves of a site, kept to save time. With any state, a solution is within `tol`."""

    preconditioner: Preconditioner = field(default_factory=Preconditioner)
    last: tuple[Array, Array] | None = None  # the last minimisers, and the gradients of the loss term at them


@dataclass(frozen=True, eq=False)
class Solution:
    """The computed minimisers, one row per repeat, with proven bounds on their errors."""

    f: Array  # (repeats, d)
    distance: Array  # (repeats,): an upper bound on the distance to the exact minimiser
    gradient_norm: Array  # (repeats,): an upper bound on the norm of the exact gradient at f
    passes: int  # the number of passes over the rows, without those of a compiled kernel
    rebuilds: int  # how often the preconditioner was rebuilt


def minimise_general(
    objective: Objective, curvature: float, linear: Array, start: Array, tol: float, state: SolverState
) -> Solution:
    """argmin_f O(f) + (curvature/2) ||f||^2 - <linear, f> for every row of `linear`, within `tol`.

    The solver is globally convergent. It raises `NotConverged` if rounding errors do not allow it to certify
    `tol`. The same inputs and state give the same bits, however many other threads run. A different number of
    repeats may change the last bits, since BLAS then sums in a different order.
    """
    check_arguments(objective, curvature, linear, start, tol)
    phi = GradientEvaluator(objective, curvature, linear)
    goal = phi.strong * tol
    built = state.preconditioner.rebuilds
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        f, bound = _together(phi, start, goal, state)
        missed = np.flatnonzero(~(bound <= goal))
        if len(missed):
            careful = CarefulGradientEvaluator(objective, curvature, linear[missed])
            f[missed], bound[missed] = _solve_carefully(careful, f[missed], goal, state.preconditioner)
            phi.count += careful.count
        for r in np.flatnonzero(~(bound <= goal)):
            one = slice(r, r + 1)
            f[one], bound[r], spent = _alone(objective, curvature, linear[one], f[one], goal)
            phi.count += spent
    if not np.all(bound <= goal):
        reached = float(np.max(np.nan_to_num(bound, nan=np.inf))) / phi.strong
        raise NotConverged(
            f"`tol` = {tol:g} is too small for the rounding errors at a site; {reached:.2g} was reached."
            f" Use tol >= {2 * reached:.1g}, or a larger penalty. Nothing was released."
        )
    return Solution(f, bound / phi.strong, bound, phi.count, state.preconditioner.rebuilds - built)


def _together(phi: GradientEvaluator, start: Array, goal: float, state: SolverState) -> tuple[Array, Array]:
    """Solve all repeats by L-BFGS with ordinary gradients. Return f, and bounds on the gradients' norms."""
    known = None
    if state.last is not None and np.array_equal(start, state.last[0]):
        known = phi.with_smooth_terms(start, state.last[1].copy())
    slack = phi.doubt(start)
    target = np.maximum(goal - 2.0 * slack, np.maximum(0.25 * goal, 1e-3 * slack))
    begin = start.copy()
    f, g = lbfgs(phi, begin, target, state.preconditioner, _most(phi), known)
    computed = f is begin and g is not known  # whether every row of g comes from a pass at `start`
    if known is not None and not computed and np.any(np.all(f == start, axis=1)):
        g = phi.gradient(f)  # some rows may be those of `known`, whose rounding errors `doubt` does not cover
    bound = _certain(g, phi.doubt(f))
    state.last = (f.copy(), g - phi.with_smooth_terms(f, np.zeros_like(f)))
    return f, bound


def _solve_carefully(
    careful: CarefulGradientEvaluator, start: Array, goal: float, preconditioner: Preconditioner
) -> tuple[Array, Array]:
    """Solve all repeats by L-BFGS with the gradients of careful.py, which have smaller rounding errors.

    Return f, and bounds on the gradients' norms.
    """
    bound = _certain(careful.gradient(start), careful.doubt(start))
    if np.all(bound <= goal):
        return start, bound
    target = np.maximum(goal - 1.5 * careful.doubt(start), 0.25 * goal)
    f, g = lbfgs(careful, start.copy(), target, preconditioner, _most(careful))
    return f, _certain(g, careful.doubt(f))


def _alone(
    objective: Objective, curvature: float, linear: Array, near: Array, goal: float
) -> tuple[Array, float, int]:
    """Solve one repeat by damped Newton steps from `near`. If they fail, solve it in stages from 0.

    Return f, an upper bound on the gradient's norm at f, and the number of passes over the rows.
    """
    plain = GradientEvaluator(objective, curvature, linear)
    careful = CarefulGradientEvaluator(objective, curvature, linear)
    f = newton(careful, near, 0.5 * goal, steps=_NEAR)
    size, doubt = norms(careful.gradient(f)), careful.doubt(f)
    if not (size[0] + doubt[0] <= goal or size[0] <= doubt[0]):  # neither solved nor limited by rounding
        f = newton(careful, solve_by_stages(plain, 1e-3 * goal), 0.25 * goal)
        size, doubt = norms(careful.gradient(f)), careful.doubt(f)
    return f, float(_UP * (size[0] + doubt[0])), plain.count + careful.count


def _certain(g: Array, doubt: Array) -> Array:
    """An upper bound on the norm of the true gradient, (repeats,)."""
    return np.asarray(_UP * (norms(g) + doubt))


def _most(phi: GradientEvaluator) -> int:
    """The number of passes over the rows after which L-BFGS gives up."""
    return 200 if phi.objective.dimension <= LARGEST_MATRIX else 1000


def check_arguments(objective: Objective, curvature: float, linear: Array, start: Array, tol: float) -> None:
    """Raise an error if an argument of a solve is invalid or has the wrong shape."""
    checks.nonnegative("curvature", curvature)
    checks.positive("tol", tol)
    if objective.strong + curvature <= 0.0:
        raise ParameterError(
            "`curvature` must be above 0, because the regulariser is not strongly convex; got 0."
        )
    shape = linear.shape
    if len(shape) != 2 or shape[0] == 0 or shape[1] != objective.dimension or start.shape != shape:
        raise ParameterError(
            f"`linear` and `start` must have shape (repeats, {objective.dimension});"
            f" got {shape} and {start.shape}."
        )
    if not (np.all(np.isfinite(linear)) and np.all(np.isfinite(start))):
        raise ParameterError("`linear` and `start` must be finite; a message or a penalty overflowed.")
