"""Minimise the objectives of sites: small sites by compiled kernels, all others by the general solver.

A kernel solves many small sites in one call. It reads their rows from a `Pack` (see small/sites.py). The
general solver solves one site at a time. Both bound the distance to the exact minimiser by `tol`, as
general.py explains.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.types import Array
from ..local import LocalObjective, Objective
from .general import Solution, SolverState, check_arguments, minimise_general
from .small.sites import Pack, is_small, pack, small_form

Places = NDArray[np.int64]


class ManySites:
    """The objectives of consecutive sites, and the states of their solvers between rounds.

    The result of a site has the same bits as the result of `minimise`; it does not depend on the other sites.
    """

    def __init__(self, objectives: Sequence[LocalObjective]) -> None:
        self.objectives = list(objectives)
        forms = [small_form(objective) for objective in self.objectives]
        self._packs: list[tuple[Places, Pack]] = []
        for form in ("dense", "sparse"):
            places = np.array([i for i, found in enumerate(forms) if found == form], dtype=np.int64)
            if len(places):
                self._packs.append((places, pack([self.objectives[i] for i in places])))
        self._others = np.array([i for i, found in enumerate(forms) if found is None], dtype=np.int64)
        self.refresh()

    def part(self, start: int, stop: int) -> ManySites:
        """Sites start, ..., stop - 1 with new solver states; the rows are not copied."""
        made = ManySites.__new__(ManySites)
        made.objectives = self.objectives[start:stop]
        made._packs = []
        for places, packed in self._packs:
            first, last = np.searchsorted(places, [start, stop]).tolist()
            if first < last:
                made._packs.append((places[first:last] - start, packed.part(first, last)))
        made._others = self._others[(self._others >= start) & (self._others < stop)] - start
        made.refresh()
        return made

    @property
    def strong(self) -> Array:
        """The strong convexity constant (rho/N) of each site's objective, (sites,)."""
        return np.array([objective.strong for objective in self.objectives])

    def warm_up(self) -> None:
        """Load or compile the machine code, so that the first round takes no longer than later rounds."""
        for _, packed in self._packs:
            nothing = np.empty((0, 1, self.objectives[0].dimension))
            packed.part(0, 0).minimise(np.empty(0), nothing, nothing, 1.0)
            packed.part(0, 0).metrics(nothing)

    def refresh(self) -> None:
        """Reset the states of the general solver; the kernels have no state."""
        self._states = [SolverState() for _ in self._others]

    def minimise(self, curvature: Array, linear: Array, start: Array, tol: float) -> Array:
        """Minimisers, (sites, repeats, d), each within `tol` of the exact one; `curvature` is (sites,)."""
        f = np.empty_like(start)
        for i, state in zip(self._others.tolist(), self._states, strict=True):
            site = self.objectives[i], float(curvature[i]), linear[i], start[i]
            f[i] = minimise_general(*site, tol, state).f
        for places, packed in self._packs:
            if len(places) == len(f):
                return self._kernel(places, packed, curvature, linear, start, tol)
            f[places] = self._kernel(places, packed, curvature[places], linear[places], start[places], tol)
        return f

    def metrics(self, f: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of every site's models on its own rows; both are (sites, repeats)."""
        losses, qualities = np.empty((2, *f.shape[:2]))
        for i in self._others.tolist():
            losses[i], qualities[i] = self.objectives[i].metrics(f[i])
        for places, packed in self._packs:
            if len(places) == len(f):
                return packed.metrics(f)
            losses[places], qualities[places] = packed.metrics(f[places])
        return losses, qualities

    def _kernel(
        self, places: Places, packed: Pack, curvature: Array, linear: Array, start: Array, tol: float
    ) -> Array:
        """The minimisers of the sites in `packed`. The general solver finishes repeats that miss `tol`."""
        typical, d = self.objectives[places[0]], start.shape[2]
        check_arguments(typical, float(curvature.min()), linear.reshape(-1, d), start.reshape(-1, d), tol)
        f, bound = packed.minimise(curvature, linear, start, tol)
        goal = (packed.strong + curvature) * tol
        for k in np.flatnonzero(~np.all(bound <= goal[:, None], axis=1)).tolist():
            objective = self.objectives[places[k]]
            finish(objective, float(curvature[k]), linear[k], start[k], tol, f[k], bound[k])
        return f


def minimise(
    objective: Objective, *, curvature: float, linear: Array, start: Array, tol: float, state: SolverState
) -> Solution:
    """argmin_f O(f) + (curvature/2) ||f||^2 - <linear, f> for every row of `linear`, within `tol`.

    The solver is globally convergent. It raises `NotConverged` if rounding errors do not allow it to certify
    `tol`, so a returned solution is always within `tol`. The same inputs and state give the same bits,
    however many other threads run. At a small site, the result of a repeat depends neither on the other
    repeats nor on the state.
    """
    if not is_small(objective):
        return minimise_general(objective, curvature, linear, start, tol, state)
    check_arguments(objective, curvature, linear, start, tol)
    (f,), (bound,) = pack([objective]).minimise(np.array([curvature]), linear[None], start[None], tol)
    passes = finish(objective, curvature, linear, start, tol, f, bound)
    return Solution(f, bound / (objective.strong + curvature), bound, passes, 0)


def finish(
    objective: Objective, curvature: float, linear: Array, start: Array, tol: float, f: Array, bound: Array
) -> int:
    """Let the general solver replace `f` and `bound` in the repeats in which the kernel did not reach `tol`.

    Return the number of passes of the general solver over the rows.
    """
    passes = 0
    for r in np.flatnonzero(~(bound <= (objective.strong + curvature) * tol)):
        one = slice(r, r + 1)
        solution = minimise_general(objective, curvature, linear[one], start[one], tol, SolverState())
        f[one], bound[one] = solution.f, solution.gradient_norm
        passes += solution.passes
    return passes
