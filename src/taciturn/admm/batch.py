"""Many nodes side by side: the loop of `node.py` on arrays (sites, repeats, d), with no Python per site.

The equations are the same functions, with a column of penalties instead of one; the noise of a site is the
one that it draws alone, and so is its minimiser. So every vector equals the loop's to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..objective.solver.many import ManySites
from ..rng import Streams
from ..types import Array
from .leaving import RoundNoise
from .reach import check_history
from .tables import Tables
from .updates import curvature, dual_update, linear_term


@dataclass(frozen=True, eq=False)
class Batch:
    """Some sites of a run; all but `lam` is fixed before the first round.

    sites : their numbers in the network.
    degrees : V of each.
    tables : their numbers.
    lam : (sites, repeats, d), the dual variables, which `hear` moves on.
    """

    sites: NDArray[np.int64]
    solvers: ManySites
    degrees: NDArray[np.int64]
    tables: Tables
    tol: float
    streams: Streams
    refresh: int
    lam: Array

    def primal(self, t: int, f: Array, heard: Array) -> Array:
        """What the sites release in round t, from what they and their neighbours released before."""
        tables, V = self.tables, self.degrees[:, None, None]
        eta = tables.eta[:, t - 1][:, None, None]
        if (t - 1) % self.refresh == 0:
            self.solvers.refresh()
        noise = self._noise(t)
        linear = linear_term(f, heard, self.lam, eta=eta, V=V, noise=noise.inside())
        solved = self.solvers.minimise(curvature(eta, V).ravel(), linear, f, self.tol * noise.share)
        return noise.release(solved)

    def check_history(self, t: int, f: Array, heard: Array) -> None:
        """Raise where a real run cannot be certain of its next solves: a function of public values."""
        clip = self.tables.clip
        if self.streams.simulated or self.tables.noise is None or clip is None:
            return
        eta, V = self.tables.eta[:, t - 1], self.degrees
        b = linear_term(f, heard, self.lam, eta=eta[:, None, None], V=V[:, None, None])
        check_history(b, self.solvers.strong + curvature(eta, V), clip=clip, t=t)

    def hear(self, t: int, f: Array, heard: Array) -> None:
        """The end of round t: f is what the sites released in it, `heard` the sums over their neighbours."""
        theta = self.tables.theta[:, t - 1][:, None, None]
        self.lam[:] = dual_update(self.lam, f, heard, theta=theta, V=self.degrees[:, None, None])

    def _noise(self, t: int) -> RoundNoise:
        """The noise of round t, for every site and repeat a vector of its own."""
        tables = self.tables
        scale, output = (
            None if table is None else np.ascontiguousarray(table[:, t - 1])
            for table in (tables.scale, tables.output_scale)
        )
        return RoundNoise(tables, self.streams, t, self.sites, scale, output, self.lam.shape[1:])
