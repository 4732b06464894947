"""Masked descent in one process: every site its own noise and masks, each round the sum of all messages.

Messages are relayed until every site has all of them, so that the graph must be connected and has no other
say: one process adds them up once. The public part is computed once too; real sites compute it alike.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..admm.run import Recorder, Run
from ..errors import ParameterError
from ..graph import Graph, GraphLike
from ..masked import accounts
from ..masked.masks import Message, PairKeys, expand
from ..masked.method import MANY_ROWS, MaskedDescent, MaskedTables, PublicFacts
from ..masked.node import MaskedNode, loop
from ..masked.public.descent import DescentState
from ..masked.shares import share_of
from ..masked.sums import add_up
from ..objective.problem import Problem
from ..objective.regularizers import L2
from ..objective.softmax import Softmax, SoftmaxProblem
from ..objective.solver.threads import one_blas_thread
from ..objective.sources import SourcedProblem
from ..privacy.certificate.certificate import Certificate
from ..privacy.facts import RunFacts, SiteBudget, SiteFacts
from ..privacy.ledger.active import charge_run
from ..privacy.ledger.memory import Ledger, MemoryLedger
from ..privacy.ledger.opening import LedgerLike, open_ledger
from ..privacy.release import Loop, Release
from ..progress import progress
from ..rng import SecureStreams, SeededStreams, Streams
from ..types import Array
from .choice import cpus_here
from .setup import describe_run

AnyProblem = Problem | SourcedProblem | SoftmaxProblem
SiteLoop = Loop[Message, DescentState, Message]
_THREADED = 200_000  # rows x features x repeats of a site from which on a second thread helps


@dataclass(frozen=True)
class NodeTask:
    """What every node of a masked run in one place, or on one cluster, must be told."""

    tables: MaskedTables
    total: int
    seed: int | None
    repeats: int


@dataclass(frozen=True)
class MaskedSetup:
    """One run of masked descent, checked. With a seed a simulation; without, secret noise and masks."""

    problem: Problem | SoftmaxProblem
    graph: Graph
    method: MaskedDescent
    facts: PublicFacts
    tables: MaskedTables
    repeats: int
    seed: int | None
    history: bool
    measure: bool
    names: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    def run_facts(self) -> RunFacts:
        """All that the accountant must know of the run as a whole."""
        return accounts.run_facts(
            self.tables,
            self.facts,
            C=self.problem.C,
            regularization=self.problem.regularization,
            simulated=self.seed is not None,
            where="process" if self.seed is None else "",
            marks=self.marks,
            persons=self.problem.persons,
        )

    def node_task(self) -> NodeTask:
        """All that a node must be told of the run."""
        return NodeTask(self.tables, self.facts.total, self.seed, self.repeats)

    def site_facts(self) -> list[SiteFacts]:
        """B_i and V_i of every site."""
        return accounts.site_facts(self.problem.samples.tolist(), self.graph.degrees.tolist(), self.names)

    def settings(self) -> dict[str, Any]:
        """The settings of the run as plain JSON, for every artefact made from it."""
        numbers = {"rounds": self.tables.rounds, "repeats": self.repeats, "start": "zeros"}
        return describe_run(self.problem, self.graph, self.method, self.seed, numbers)


def prepare_masked(
    problem: AnyProblem,
    graph: GraphLike,
    method: MaskedDescent,
    *,
    rounds: int,
    repeats: int,
    seed: int | None,
    history: bool,
    measure: bool,
    names: tuple[str, ...] = (),
    marks: tuple[str, ...] = (),
) -> MaskedSetup:
    """Check everything that can be wrong with a run, and put it together."""
    graph = Graph.of(graph, problem.n)
    if isinstance(problem, SourcedProblem):
        problem = problem.load()
    if type(problem.regularizer) is not L2:
        raise ParameterError("`regularizer` must be L2 for MaskedDescent.")
    problem.require_unit_rows()
    outputs = problem.loss.classes if isinstance(problem.loss, Softmax) else 1
    facts = PublicFacts(
        sites=problem.n,
        total=problem.units,
        largest=_most_rows(problem),
        dimension=problem.dimension // outputs,
        loss=problem.loss,
        regularization=problem.regularization / (problem.C * problem.n),
        places=1 if problem.persons is None else problem.persons.most_sites,
    )
    tables = method.tables(facts, rounds)
    repeats = checks.whole("repeats", repeats, least=1)
    return MaskedSetup(problem, graph, method, facts, tables, repeats, seed, history, measure, names, marks)


def _most_rows(problem: Problem | SoftmaxProblem) -> int:
    """A public bound on the rows at one site; how many rows persons have need not be public."""
    if problem.persons is None:
        return int(problem.samples.max())
    most = problem.persons.most_rows
    return MANY_ROWS if most is None else int(problem.samples.max()) * most


def run_masked(
    setup: MaskedSetup,
    *,
    ledger: Ledger | None = None,
    threads: int | None = None,
    show: bool | None = None,
) -> Run:
    """Drive every site through all rounds; each charge is in the ledger before its message is there."""
    ledger = MemoryLedger(setup.run_facts(), setup.site_facts()) if ledger is None else ledger
    recorder = Recorder(setup.tables.rounds, setup.repeats, history=setup.history)
    start = setup.tables.descent.start(setup.repeats)
    nodes = make_nodes(setup.node_task(), [setup.problem.site(i) for i in range(setup.facts.sites)])
    loops = [loop(node, start, commit=lambda release: ledger.charge(release.charge)) for node in nodes]
    workers = threads or _threads_for(setup)
    with (
        one_blas_thread(),
        ThreadPoolExecutor(workers) as pool,
        progress(setup.tables.rounds, "rounds", show=show) as step,
    ):
        each: Callable[..., Any] = map if workers == 1 else pool.map
        total = add_up(release.message for release in each(next, loops))
        for t in range(1, setup.tables.rounds + 1):
            answers = list(each(tell_total(total), loops))
            f = _models(setup, state_of(answers[0]))
            recorder.record(t, f, *_metrics(setup, f[0], each))
            step()
            if t < setup.tables.rounds:
                total = add_up(answer.message for answer in answers if isinstance(answer, Release))
    return recorder.finish(f, ledger, setup.settings())


def run_and_charge(
    setup: MaskedSetup,
    *,
    ledger: LedgerLike | None = None,
    budget: SiteBudget | None = None,
    threads: int | None = None,
    show: bool | None = None,
    what: str = "train",
) -> Run:
    """`run_masked` with a ledger of its own; inside a `Budget` the whole run is reserved there first."""
    facts, sites = setup.run_facts(), setup.site_facts()

    def plan(delta: float) -> Certificate:
        return Certificate.from_ledger(accounts.planned_ledger(setup.tables, facts, sites), delta)

    with charge_run(what, plan), open_ledger(ledger, facts, sites, budget) as opened:
        return run_masked(setup, ledger=opened, threads=threads, show=show)


def _threads_for(setup: MaskedSetup) -> int:
    """All cores, or one where the rows are few and the noise is quick to draw."""
    entries = setup.facts.largest * setup.facts.dimension * setup.repeats
    return cpus_here() if setup.seed is None or entries >= _THREADED else 1


Answer = Release[Message, DescentState] | DescentState


def tell_total(total: Message) -> Callable[[SiteLoop], Answer]:
    """Tells a site the sum of all messages, and takes its next release, or its last state."""

    def tell(site: SiteLoop) -> Answer:
        try:
            return site.send(total)
        except StopIteration as end:
            last: DescentState = end.value
            return last

    return tell


def state_of(answer: Answer) -> DescentState:
    """Where a site stands after the round that it was told about."""
    return answer.state if isinstance(answer, Release) else answer


class _Together:
    """`tables.after` for all sites of one process: they all ask the same, and it is computed once."""

    def __init__(self, tables: MaskedTables) -> None:
        self._tables, self._lock = tables, threading.Lock()
        self._last: tuple[DescentState, Message, DescentState] | None = None

    def __call__(self, state: DescentState, total: Message) -> DescentState:
        with self._lock:
            if self._last is None or self._last[0] is not state or self._last[1] is not total:
                self._last = state, total, self._tables.after(state, total)
            return self._last[2]


def _models(setup: MaskedSetup, state: DescentState) -> Array:
    """The model of every site, (sites, repeats, d): they are all the same."""
    return np.broadcast_to(
        state.f.reshape(setup.repeats, -1), (setup.facts.sites, setup.repeats, setup.problem.dimension)
    )


def _metrics(setup: MaskedSetup, f: Array, each: Callable[..., Any]) -> Array:
    """(2, sites, repeats): each site's mean loss and accuracy on its own rows, nan where not measured."""
    if not setup.measure:
        return np.full((2, setup.facts.sites, setup.repeats), np.nan)
    found = list(each(lambda i: setup.problem.site(i).metrics(f), range(setup.facts.sites)))
    return np.stack([np.stack(part) for part in zip(*found, strict=True)])


def make_nodes(task: NodeTask, objectives: Sequence[Any], first: int = 0) -> list[MaskedNode]:
    """The nodes of sites first, first + 1, ..., which hold these rows."""
    streams: Streams = SecureStreams() if task.seed is None else SeededStreams(task.seed)
    root = _root(task.seed)
    run, together = expand(root, "run"), _Together(task.tables)

    def keys(i: int) -> PairKeys:
        partners = task.tables.pairs.partners(i)
        return PairKeys(i, {j: expand(root, "pair", min(i, j), max(i, j)) for j in partners}, run=run)

    return [
        MaskedNode(
            site=i,
            share=share_of(objective, task.tables.descent, task.total),
            tables=task.tables,
            keys=keys(i),
            streams=streams,
            repeats=task.repeats,
            after=together,
        )
        for i, objective in enumerate(objectives, start=first)
    ]


def _root(seed: int | None) -> bytes:
    """What all pair keys of the run are made of: secret, or the seed's in a simulation."""
    return os.urandom(32) if seed is None else hashlib.sha256(f"simulated {seed}".encode()).digest()
