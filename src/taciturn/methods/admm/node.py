"""A node of the paper's methods [ZKL18]: it computes some sites of a run, on arrays (sites, repeats, d).

Repeats are independent repetitions of a simulation. In each round a site solves a problem on its rows and
sends the noisy result f(t) to its neighbours; this is its release. The equations are in `updates.py`. A site
draws the same noise and finds the same minimiser, to the last bit, as in a node that computes only this
site. This file does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.types import Array
from ...objective.solver.many import ManySites
from ...privacy.facts import RoundCharges
from ...rng import Streams
from .real_runs import check_history, try_solve
from .release_noise import RoundNoise
from .tables import Tables
from .updates import curvature, dual_update, linear_term


@dataclass(frozen=True, eq=False)
class NodeState:
    """The state of sites after t rounds, from released vectors only; each array is (sites, repeats, d).

    f : the last release.   lam : the dual variable.   heard : the sum of the neighbours' last releases.
    """

    t: int
    f: Array
    lam: Array
    heard: Array

    @classmethod
    def start(cls, f: Array, heard: Array) -> NodeState:
        """t = 0: f_i(0), the sum of the neighbours' f_j(0), and lam_i(0) = 0."""
        return cls(0, f, np.zeros_like(f), heard)


@dataclass(frozen=True, eq=False)
class Node:
    """Some sites of a run; all fields are fixed before the first round.

    The solver makes a new preconditioner every `refresh` rounds and keeps it in between. A run that resumes
    at a round in which the preconditioner is new gives the same bits as a run that never stopped.

    sites : the numbers of these sites in the network.
    degrees : V_i, the number of neighbours of each of these sites.
    tables : the schedules and noise scales of these sites, (sites, rounds).
    """

    sites: NDArray[np.int64]
    solvers: ManySites
    degrees: NDArray[np.int64]
    tables: Tables
    tol: float
    streams: Streams
    refresh: int = 10

    @property
    def rounds(self) -> int:
        return self.tables.rounds

    def start(self, first: Array | None, heard: Array | None) -> NodeState:
        """The state before round 1, from public start vectors; if they are None, zeros for one repeat."""
        if first is None or heard is None:
            first = heard = np.zeros((len(self.sites), 1, self.solvers.objectives[0].dimension))
        return NodeState.start(first, heard)

    def message(self, state: NodeState) -> Array | None:
        """f(t) as it is sent: with noise, clipped and rounded; None if the solve failed in a real run.

        In a real run (secret noise), vectors that are too large raise `OutOfReach` before noise is drawn.
        """
        self._check_history(state)
        return try_solve(self.streams, lambda: self.primal(state))

    def primal(self, state: NodeState) -> Array:
        """The primal update of round state.t + 1 [ZKL18, (10)], with its noise."""
        t, tables, V = state.t + 1, self.tables, self.degrees[:, None, None]
        eta = tables.eta[:, t - 1][:, None, None]
        if (t - 1) % self.refresh == 0:
            self.solvers.refresh()
        noise = RoundNoise(
            tables=tables,
            streams=self.streams,
            t=t,
            sites=self.sites,
            scale=tables.column("scale", t),
            output_scale=tables.column("output_scale", t),
            shape=(state.f.shape[1], state.f.shape[2]),
        )
        linear = linear_term(state.f, state.heard, state.lam, eta=eta, V=V, noise=noise.inside())
        tol = self.tol * noise.share
        return noise.release(self.solvers.minimise(curvature(eta, V).ravel(), linear, state.f, tol))

    def charges(self, t: int) -> RoundCharges:
        """The cost of the releases of round t."""
        return self.tables.charges(t, self.sites)

    def after(self, state: NodeState, f: Array, heard: Array) -> NodeState:
        """The dual update [ZKL18, (11)], from the vectors sent and received in round state.t + 1."""
        theta = self.tables.theta[:, state.t][:, None, None]
        lam = dual_update(state.lam, f, heard, theta=theta, V=self.degrees[:, None, None])
        return NodeState(state.t + 1, f, lam, heard)

    def models(self, state: NodeState) -> Array:
        """The last release of each site."""
        return state.f

    def metrics(self, models: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of every site and repeat on the site's own rows."""
        return self.solvers.metrics(models)

    def saved(self, state: NodeState) -> dict[str, Array]:
        """A state as arrays, each with a row for every site."""
        return {"f": state.f, "lam": state.lam, "heard": state.heard}

    def restored(self, t: int, saved: Mapping[str, Array]) -> NodeState:
        """The state after t rounds, from the arrays that `saved` returned."""
        return NodeState(t, saved["f"], saved["lam"], saved["heard"])

    def _check_history(self, state: NodeState) -> None:
        clip = self.tables.clip
        if self.streams.simulated or self.tables.noise is None or clip is None:
            return
        eta, V = self.tables.eta[:, state.t], self.degrees
        b = linear_term(state.f, state.heard, state.lam, eta=eta[:, None, None], V=V[:, None, None])
        check_history(b, self.solvers.strong + curvature(eta, V), clip=clip, t=state.t + 1)
