"""The audit of ADMM: run one site on either of two neighbouring data sets; compute what its neighbour learns.

The two data sets differ in one record. The site's only neighbour, the observer, knows the method and all
other records, and chooses its own messages. All other records are x = 0, like an encoded invalid row. They
add no curvature, so the replaced record has the largest effect.

A transcript, (rounds, runs, d), contains everything that the site broadcast. From the transcript the observer
computes the state of the site, and the exact density of the transcript on either data set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core.errors import ParameterError
from ..core.types import Array
from ..methods.admm.node import Node, NodeState
from ..methods.admm.perturbations import Method
from ..methods.admm.prepared import PreparedADMM
from ..methods.admm.tables import Tables
from ..methods.admm.updates import curvature, dual_update, linear_term
from ..methods.base import Network
from ..methods.loop import Send, Store, drive, loop
from ..methods.programs.coordinates import Coordinates
from ..methods.sums.masks import Message
from ..methods.sums.prepared import PreparedSums
from ..methods.sums.program import SumTables
from ..methods.whitened_penalty import PreparedWhitened, whitened_objective
from ..objective.local import LocalObjective
from ..objective.losses import Logistic, Loss
from ..objective.solver.general import SolverState
from ..objective.solver.many import ManySites, minimise
from ..privacy.facts import RoundCharges, RunFacts, SiteFacts
from ..privacy.ledger.memory import Ledger
from ..rng import Streams
from .masked_audit import SumsCase

Score = Callable[[Array], Array]
Charging = Callable[[RoundCharges], None]
SITES = 2  # the site and the observer
_BATCH = 5_000  # the number of runs that are computed at once; more would not fit into the processor's cache


@dataclass(frozen=True, eq=False)
class Case:
    """One site's run on either of two neighbouring data sets, and the messages of the observer.

    old, new : the record in the old data set, and the record that replaces it in the new data set; each has
        norm at most 1.
    labels : the label of the record in each of the K problems of one-vs-rest, equal in both data sets.
    integers : whether the site releases whole multiples of the grid, as in a real run.
    samples : B, the number of records; the other B - 1 records are 0.
    messages : the messages of the observer in rounds 0 to `rounds`, (rounds + 1, d); zeros by default.
    delta : the delta at which epsilon is compared.
    scores : additional scores that the observer tries: functions of a transcript (rounds, runs, K d). A
        larger score means that the old data are more likely.
    """

    name: str
    about: str
    method: Method
    old: Sequence[float]
    new: Sequence[float]
    rounds: int
    samples: int
    loss: Loss = field(default_factory=Logistic)
    C: float = 1.0
    regularization: float = 1e-6
    messages: Array | None = None
    delta: float = 0.01
    tol: float = 1e-8
    scores: Mapping[str, Score] = field(default_factory=dict)
    labels: tuple[float, ...] = (1.0,)
    integers: bool = False
    more: int = 1  # the factor on the number of runs

    def __post_init__(self) -> None:
        if len(self.old) != len(self.new):
            raise ParameterError(
                f"`new` must have as many entries as `old`, {len(self.old)}; got {len(self.new)}."
            )

    @property
    def dimension(self) -> int:
        return len(self.old)

    @property
    def problem(self) -> dict[str, Any]:
        """The objective without the rows."""
        return {"loss": self.loss, "C": self.C, "regularization": self.regularization}

    def tables(self) -> Tables:
        """The numbers of the site in every round, such as eta and the scale of the noise."""
        return self.method.tables(SITES, self.rounds).site(0)

    def objective(self, record: Sequence[float], label: float = 1.0) -> LocalObjective:
        """The objective of the site with this record."""
        X, y = np.zeros((self.samples, self.dimension)), np.ones(self.samples)
        X[0], y[0] = record, label
        return LocalObjective(X, y, **self.problem, sites=SITES)

    def heard(self) -> Array:
        """What the site hears: the messages of the observer, (rounds + 1, d)."""
        zeros = np.zeros((self.rounds + 1, self.dimension))
        return zeros if self.messages is None else np.asarray(self.messages, dtype=np.float64)

    def network(self, sites: int = 1) -> Network:
        """The public facts about the first `sites` sites of the network."""
        known: Any = {"total": SITES, "dimension": self.dimension, **self.problem}
        return Network.without_rows([self.samples] * sites, [1] * sites, **known)

    def prepared(self) -> PreparedADMM:
        """The run of the site, without its rows."""
        return PreparedADMM(self.network(), self.tables(), self.tol, "audited")

    def run_facts(self) -> RunFacts:
        """The facts that the accountant needs about the run."""
        where = "folders" if self.integers else ""
        return self.prepared().run_facts(simulated=not self.integers, where=where, outputs=len(self.labels))

    def site_facts(self) -> SiteFacts:
        """The facts that the accountant needs about the site."""
        theta = tuple(self.tables().theta.tolist())
        return SiteFacts(site=0, samples=self.samples, degree=1, dual_step=theta)

    def earlier_rounds(
        self, runs: int, streams: tuple[Streams, Streams], ledger: Ledger
    ) -> tuple[int, Array]:
        """(number, log ratios) of the rounds before the ADMM rounds. These rounds are charged to the ledger.

        The log ratios are ln p_old / p_new of everything that these rounds released, (2, runs).
        """
        return 0, np.zeros((2, runs))

    def observe(
        self, runs: int, streams: tuple[Streams, Streams], ledger: Ledger
    ) -> tuple[dict[str, tuple[Array, Array]], Array | None]:
        """(scores on the old and the new data; ln p_old / p_new, (2, runs), or None if it is not exact)."""
        earlier, before = self.earlier_rounds(runs, streams, ledger)

        def charge_later(charges: RoundCharges) -> None:
            ledger.charge_round(charges._replace(t=charges.t + earlier))

        charge: Charging | None = charge_later
        lean, log_ratios = np.zeros_like(before), np.zeros_like(before)
        transcripts = []
        for label in self.labels:  # one problem per class in one-vs-rest, each with its own noise
            old, new = self.objective(self.old, label), self.objective(self.new, label)
            released = (
                transcript(self, old, runs, streams[0], charge),
                transcript(self, new, runs, streams[1]),
            )
            charge = None  # the first charge covers all outputs
            paths = clean_path(self, old, streams[0]), clean_path(self, new, streams[0])
            log_ratios += [log_density(self, old, part) - log_density(self, new, part) for part in released]
            lean += [matched_filter(self, part, *paths) for part in released]
            transcripts.append(released)
        lean, log_ratios = lean + before, log_ratios + before
        seen = [np.concatenate(parts, axis=-1) for parts in zip(*transcripts, strict=True)]
        scores = {"likelihood ratio": (log_ratios[0], log_ratios[1]), "clean path": (lean[0], lean[1])}
        scores |= {name: (score(seen[0]), score(seen[1])) for name, score in self.scores.items()}
        tables = self.tables()
        exact = tables.output_noise is None and tables.grid is None and tables.clip is None
        return scores, log_ratios if exact else None


@dataclass(frozen=True, eq=False)
class WhitenedCase(Case):
    """A case in whitened coordinates: rounds that release moments of the rows, then `rounds` ADMM rounds.

    From the totals of the moments, all sites compute coordinates in which rows vary equally in all
    directions. The observer sends its message last, so it can choose the totals and thereby the coordinates.
    It makes all totals 0. Whitened rows are then long, and are clipped to norm 1.

    whiten : the privacy cost mu of the moments.
    """

    whiten: float = 0.1
    more: int = 4

    def prepared(self) -> PreparedWhitened:
        return PreparedWhitened.of(super().prepared(), self.whiten, self.network(SITES))

    @cached_property
    def coordinates(self) -> Coordinates:
        """The coordinates that all sites compute from the totals."""
        tables = self.prepared().moments.tables
        state = tables.program.start(1)
        for facts in tables.sums:
            state = tables.after(state, np.zeros((1, facts.length), dtype=np.uint64))
        found: Coordinates = state.coordinates[0]
        return found

    def raw(self, record: Sequence[float]) -> LocalObjective:
        """The objective of the site with this record, before the rows are whitened."""
        return super().objective(record)

    def objective(self, record: Sequence[float], label: float = 1.0) -> LocalObjective:
        return whitened_objective(super().objective(record, label), self.coordinates)

    def earlier_rounds(
        self, runs: int, streams: tuple[Streams, Streams], ledger: Ledger
    ) -> tuple[int, Array]:
        prepared = self.prepared()
        rounds = prepared.moments.rounds
        for t in range(1, rounds + 1):
            ledger.charge_round(prepared.charges(t))
        about: Any = {"name": self.name, "about": self.about, "rounds": rounds}
        moments = MomentsCase(whitened=self, samples=(self.samples,) * SITES, **about)
        return rounds, np.stack(moments.observe(runs, streams)[0]["honest sums"])


@dataclass(frozen=True, kw_only=True)
class MomentsCase(SumsCase):
    """The moments of a whitened case as masked sums of two sites, one of which is the observer."""

    whitened: WhitenedCase

    def prepared(self) -> PreparedSums:
        return self.whitened.prepared().moments

    def rows(self, site: int, record: float) -> LocalObjective:
        """The rows of site 0. The rows of the observer are never needed."""
        return self.whitened.raw(self.whitened.old if record == self.old else self.whitened.new)

    def total(self, tables: SumTables, t: int, runs: int) -> Message:
        return np.zeros((runs, tables.sums[t - 1].length), dtype=np.uint64)


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

    This is a sum over rounds. If the noise is inside the problem, each term is ln p_noise(phi(f)) + ln det H
    (see `noise_of` and `log_jacobian`). If the noise is on the output, each term is ln p_noise(f - argmin).
    The density is exact without output noise, clipping and rounding. With any of these, the result is still a
    valid score.
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

    The score is larger if the transcript r is closer to `old` than to `new`. These are the broadcasts of runs
    without noise on the two data sets (`clean_path`).
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
    """The broadcasts of one node, to which the observer sends the case's messages."""
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
