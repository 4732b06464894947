"""Many sites at once: the small ones in one call of the kernel, the others one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...types import Array
from ..local import LocalObjective
from .general import SolverState, check_arguments, minimise_general
from .minimise import finish
from .small.sites import Pack, is_small


class ManySites:
    """The objectives of consecutive sites, and what their solvers keep between rounds.

    Every site gets the bits that `minimise` gives it alone, whatever else is solved beside it.
    """

    def __init__(self, objectives: Sequence[LocalObjective]) -> None:
        self.objectives = list(objectives)
        small = np.array([is_small(objective) for objective in self.objectives], dtype=bool)
        self._small, self._others = np.flatnonzero(small), np.flatnonzero(~small)
        self._pack = Pack.of([self.objectives[i] for i in self._small]) if len(self._small) else None
        self.refresh()

    def part(self, start: int, stop: int) -> ManySites:
        """Sites start, ..., stop - 1, with a state of their own; the rows are not copied."""
        made = ManySites.__new__(ManySites)
        made.objectives = self.objectives[start:stop]
        made._small, made._others = (_within(which, start, stop) for which in (self._small, self._others))
        first, last = np.searchsorted(self._small, [start, stop]).tolist()
        made._pack = None if self._pack is None or first == last else self._pack.part(first, last)
        made.refresh()
        return made

    @property
    def compiled(self) -> bool:
        """Whether the kernel solves all of them."""
        return len(self._others) == 0

    @property
    def strong(self) -> Array:
        """rho/N of each site, (sites,)."""
        return np.array([objective.strong for objective in self.objectives])

    def refresh(self) -> None:
        """Forget what the general solver learnt; the kernel keeps nothing."""
        self._states = [SolverState() for _ in self._others]

    def minimise(self, curvature: Array, linear: Array, start: Array, tol: float) -> Array:
        """The minimisers, (sites, repeats, d), each within `tol`; curvature (sites,)."""
        f = np.empty_like(start)
        for i, state in zip(self._others.tolist(), self._states, strict=True):
            f[i] = minimise_general(
                self.objectives[i],
                curvature=float(curvature[i]),
                linear=linear[i],
                start=start[i],
                tol=tol,
                state=state,
            ).f
        if self._pack is None:
            return f
        which = slice(None) if self.compiled else self._small
        curved, linear, start = curvature[which], linear[which], start[which]
        check_arguments(
            self.objectives[self._small[0]],
            float(curved.min()),
            linear.reshape(-1, linear.shape[2]),
            start.reshape(-1, start.shape[2]),
            tol,
        )
        solved, bound = self._pack.minimise(curved, linear, start, tol)
        goal = (self._pack.strong + curved) * tol
        for k in np.flatnonzero(~np.all(bound <= goal[:, None], axis=1)).tolist():
            objective = self.objectives[self._small[k]]
            finish(objective, float(curved[k]), linear[k], start[k], tol, solved[k], bound[k])
        if self.compiled:
            return solved
        f[which] = solved
        return f

    def metrics(self, f: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of every site and repeat on the site's own rows, (sites, repeats) each."""
        losses, qualities = np.empty((2, *f.shape[:2]))
        for i in self._others.tolist():
            losses[i], qualities[i] = self.objectives[i].metrics(f[i])
        if self._pack is None:
            return losses, qualities
        which = slice(None) if self.compiled else self._small
        losses[which], qualities[which] = self._pack.metrics(f[which])
        return losses, qualities


def _within(which: NDArray[np.int64], start: int, stop: int) -> NDArray[np.int64]:
    """The numbers from start to stop, counted from start."""
    return which[np.searchsorted(which, start) : np.searchsorted(which, stop)] - start
