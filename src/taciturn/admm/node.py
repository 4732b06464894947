"""The loop of one node: a generator that yields what it broadcasts and is sent what it heard. No I/O.

What it and whoever drives it agree on is in `privacy/release.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..objective.local import LocalObjective
from ..objective.solver.general import SolverState
from ..objective.solver.minimise import minimise
from ..privacy.facts import Charge
from ..privacy.release import Loop, Release
from ..rng import Streams
from ..types import Array
from . import accounts
from .leaving import RoundNoise
from .reach import check_history, given_up, try_solve
from .tables import SiteTables
from .updates import curvature, dual_update, linear_term


@dataclass(frozen=True)
class NodeState:
    """Where a node stands after t rounds. All it holds is made of released vectors, each (repeats, d)."""

    t: int
    f: Array
    lam: Array
    heard: Array

    @classmethod
    def start(cls, f: Array, heard: Array) -> NodeState:
        """t = 0: f_i(0), the sum of the neighbours' f_j(0), and lam_i(0) = 0."""
        return cls(0, f, np.zeros_like(f), heard)


@dataclass(frozen=True)
class Node:
    """All that site `site` needs for its run; fixed before the first round.

    The solver keeps its preconditioner from round to round, and starts afresh every `refresh` rounds: a run
    that resumes at such a round repeats every bit of one that never stopped.
    """

    site: int
    objective: LocalObjective
    degree: int
    tables: SiteTables
    tol: float
    streams: Streams
    repeats: int = 1
    refresh: int = 10

    def primal(self, state: NodeState, t: int, solver: SolverState) -> Array:
        """f_i(t) as the network will see it: solved, noised, clipped, rounded."""
        eta, V, noise = float(self.tables.eta[t - 1]), self.degree, self._noise(t)
        inside = noise.inside()
        solved = minimise(
            self.objective,
            curvature=curvature(eta, V),
            linear=linear_term(
                state.f, state.heard, state.lam, eta=eta, V=V, noise=None if inside is None else inside[0]
            ),
            start=state.f,
            tol=self.tol * noise.share,
            state=solver,
        ).f
        return np.asarray(noise.release(solved[None])[0])

    def check_history(self, state: NodeState, t: int) -> None:
        """Raise where a real run cannot be certain of its next solve; a function of what is public anyway."""
        clip, eta = self.tables.clip, float(self.tables.eta[t - 1])
        if self.streams.simulated or self.tables.noise is None or clip is None:
            return
        b = linear_term(state.f, state.heard, state.lam, eta=eta, V=self.degree)
        check_history(b, self.objective.strong + curvature(eta, self.degree), clip=clip, t=t)

    def dual(self, state: NodeState, f: Array, heard: Array, t: int) -> NodeState:
        """The state after round t, from what was released and heard in it."""
        theta = float(self.tables.theta[t - 1])
        return NodeState(t, f, dual_update(state.lam, f, heard, theta=theta, V=self.degree), heard)

    def charge_of(self, t: int) -> Charge:
        """What the release of round t costs."""
        return accounts.charge(self.tables, self.site, t)

    def _noise(self, t: int) -> RoundNoise:
        """The noise of round t, for every repeat a vector of its own."""
        tables, at = self.tables, slice(t - 1, t)
        return RoundNoise(
            tables=tables,
            streams=self.streams,
            t=t,
            sites=np.array([self.site]),
            scale=None if tables.scale is None else tables.scale[at],
            output_scale=None if tables.output_scale is None else tables.output_scale[at],
            shape=(self.repeats, self.objective.dimension),
        )


def loop(
    node: Node,
    state: NodeState,
    *,
    commit: Callable[[Release[Array, NodeState]], None],
    released: Array | None = None,
) -> Loop[Array, NodeState, Array]:
    """Rounds state.t + 1 .. T: yield f_i(t), be sent the sum of f_j(t), return the last state.

    `released` is the vector of round state.t + 1 where that one was committed before a crash: it is sent
    again as it stands, and neither drawn nor committed anew. A solve of a real run that fails is committed
    too, as aborted and without a vector, and ends the loop with `NotConverged`.
    """
    solver = SolverState()
    for t in range(state.t + 1, node.tables.rounds + 1):
        if released is None:
            if (t - 1) % node.refresh == 0:
                solver = SolverState()
            node.check_history(state, t)
            f = try_solve(node.streams, partial(node.primal, state, t, solver))
            charge = node.charge_of(t)._replace(aborted=f is None)
            release = Release(charge, np.empty((node.repeats, 0)) if f is None else f, state)
            commit(release)  # before the release: a crash over-counts, never under-counts
            if f is None:
                raise given_up(t)
        else:
            release, released = Release(node.charge_of(t), released, state), None
        heard = yield release
        state = node.dual(state, release.message, heard, t)
    return state
