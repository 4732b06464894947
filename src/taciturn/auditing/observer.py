"""The observer of an audit. It computes the exact density of a transcript, and the transcript without noise.

A transcript contains everything that a site broadcast, (rounds, runs, d). The observer knows the method, all
records except one, and the neighbours' messages. So the observer can compute the site's state from the
released vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ..core.types import Array
from ..methods.admm.node import Node, NodeState
from ..methods.admm.tables import Tables
from ..methods.admm.updates import curvature, dual_update, linear_term
from ..methods.loop import Send, Store, drive, loop
from ..objective.local import LocalObjective
from ..objective.solver.general import SolverState
from ..objective.solver.many import ManySites, minimise
from ..privacy.facts import RoundCharges
from ..rng import Streams
from .cases import Case

Charging = Callable[[RoundCharges], None]
_BATCH = 5_000  # the number of runs that are computed at once; more would not fit into the processor's cache


def transcript(
    case: Case, objective: LocalObjective, runs: int, streams: Streams, charge: Charging | None = None
) -> Array:
    """The site's broadcasts in `runs` runs of the real node loop, (rounds, runs, d)."""
    sizes = [_BATCH] * (runs // _BATCH) + [runs % _BATCH] * (runs % _BATCH > 0)
    tables = case.tables()
    parts = [
        _drive(_node(case, tables, objective, streams), case, size, charge if number == 0 else None)
        for number, size in enumerate(sizes)
    ]
    return np.concatenate(parts, axis=1)


def clean_path(case: Case, objective: LocalObjective, streams: Streams) -> Array:
    """The site's broadcasts in a run without noise, (rounds, d)."""
    tables = replace(
        case.tables(), method="none", noise=None, scale=None, output_noise=None, output_scale=None
    )
    return _drive(_node(case, tables, objective, streams), case, 1, None)[:, 0]


def log_density(case: Case, objective: LocalObjective, released: Array) -> Array:
    """ln p(transcript), (runs,).

    This is the sum over rounds of ln p_noise(phi(f)) + ln det H for noise in the problem, or of
    ln p_noise(f - argmin) for noise on the output. The density is exact without output noise, clipping and
    rounding. With any of these it is still a valid score.
    """
    tables = case.tables()
    total = np.zeros(released.shape[1])
    solver = SolverState()
    for t, state, f in _replay(case, tables, released):
        eta = float(tables.eta[t - 1])
        curve, b = curvature(eta, 1), linear_term(state.f, state.heard, state.lam, eta=eta, V=1)
        if tables.noise is None or tables.scale is None:
            continue
        scale = tables.scale[t - 1]
        if not tables.inside:
            solved = minimise(objective, curvature=curve, linear=b, start=state.f, tol=case.tol, state=solver)
            total += tables.noise.log_density(f - solved.f, scale)
        else:
            e = noise_of(objective, f, b, curve)
            total += tables.noise.log_density(e, scale) + log_jacobian(objective, f, curve)
    return total


def noise_of(objective: LocalObjective, f: Array, b: Array, curve: float) -> Array:
    """e = phi(f) = (b - grad O(f)) / (2 eta V) - f: the only noise that makes f the minimiser."""
    return (b - objective.gradient(f)) / curve - f


def log_jacobian(objective: LocalObjective, f: Array, curve: float) -> Array:
    """ln det H for every run, where H = -d phi / d f = I + O''(f) / (2 eta V)."""
    H = np.repeat(np.eye(f.shape[1])[None], len(f), axis=0)
    H += (objective.rho / curve) * np.eye(f.shape[1]) * objective.regularizer.curvature(f)[:, None, :]
    for part in objective.parts:
        Z = np.asarray(part.rows.matrix)
        offset = 0.0 if part.rows.offset is None else part.rows.offset
        weights = part.weight * objective.loss.curvature(offset + f @ Z.T) / curve
        H += np.einsum("rn,ni,nj->rij", weights, Z, Z)
    return np.asarray(np.linalg.slogdet(H)[1])


def matched_filter(case: Case, released: Array, old: Array, new: Array) -> Array:
    """sum_t <r(t) - (old + new)/2, old - new> / var(t).

    The score is larger if the transcript r is closer to the old path than to the new path.
    """
    tables, var = case.tables(), np.zeros(case.rounds)
    for noise, scale in ((tables.noise, tables.scale), (tables.output_noise, tables.output_scale)):
        if noise is not None and scale is not None:
            var += noise.size(scale) ** 2
    lean = (old - new) / np.where(var > 0, var, 1.0)[:, None]
    return np.asarray(np.einsum("trd,td->r", released - ((old + new) / 2)[:, None, :], lean))


def _node(case: Case, tables: Tables, objective: LocalObjective, streams: Streams) -> Node:
    one = np.array([0]), ManySites([objective]), np.array([1])
    return Node(*one, tables=tables.alone(), tol=case.tol, streams=streams)


def _drive(node: Node, case: Case, runs: int, charge: Charging | None) -> Array:
    """The broadcasts of one node whose neighbour sends the case's messages."""
    shape = (1, runs, case.dimension)
    heard = [np.broadcast_to(message, shape) for message in case.heard()]
    broadcasts: list[Array] = []

    def store(effect: Store) -> None:
        if charge is not None:
            charge(effect.charges)

    def exchange(effect: Send) -> Array:
        broadcasts.append(effect.message[0])
        return heard[effect.t]

    drive(loop(node, node.start(np.zeros(shape), heard[0])), store=store, exchange=exchange)
    return np.stack(broadcasts)


def _replay(case: Case, tables: Tables, released: Array) -> Iterator[tuple[int, NodeState, Array]]:
    """(t, the state before round t, f(t)) for each round, as the observer computes them from the releases."""
    heard = [np.broadcast_to(message, released.shape[1:]) for message in case.heard()]
    state = NodeState.start(np.zeros(released.shape[1:]), heard[0])
    for t, f in enumerate(released, start=1):
        yield t, state, f
        theta = float(tables.theta[t - 1])
        state = NodeState(t, f, dual_update(state.lam, f, heard[t], theta=theta, V=1), heard[t])
