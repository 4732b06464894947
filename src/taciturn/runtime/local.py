"""The local engine: all sites of a run in one process. Each node computes some sites; threads run nodes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

import numpy as np

from ..core import checks
from ..core.progress import progress
from ..core.types import Array
from ..graph import Graph
from ..methods.base import PreparedMethod
from ..methods.loop import Send, charge_again, charged, loop
from ..methods.run import Recorder, Run
from ..objective.solver.threads import one_blas_thread
from ..objective.sources import SourcedProblem, survey
from ..privacy.ledger.memory import Ledger, MemoryLedger
from .checkpoint import Checkpoint, ResumedRun
from .engine_selection import threads_for
from .setup import Setup

Rounds = Generator[Send, Any, Any]
_TOGETHER = 256  # with one thread, a run has one node for every 256 sites, but at most 8 nodes


def run_local(
    setup: Setup,
    *,
    ledger: Ledger | None = None,
    threads: int | None = None,
    show: bool | None = None,
    checkpoint: Checkpoint | None = None,
) -> Run:
    """Run all rounds of `setup` in this process. BLAS calls use a single thread each.

    Every release is charged to `ledger` before it is sent; by default to a new ledger in memory. With
    `checkpoint`, a simulation resumes from the newest checkpoint, and its result has the same bits as the
    result of an uninterrupted run.
    """
    workers = None if threads is None else checks.whole("threads", threads, least=1)
    if isinstance(setup.problem, SourcedProblem):
        setup = setup.on(setup.problem.load())
    if ledger is None:
        ledger = MemoryLedger(setup.run_facts(), setup.site_facts())
    workers = workers or threads_for(setup)
    recorder = Recorder(setup.rounds, setup.repeats, history=setup.history)
    resume = ResumedRun(checkpoint, setup, recorder, [] if checkpoint is None else _digests(setup))
    with one_blas_thread():
        parts = 8 * workers if workers > 1 else min(8, -(-setup.graph.n // _TOGETHER))
        network = LocalNetwork(setup, ledger, parts=parts, resume=resume)
        with ThreadPoolExecutor(workers) as pool, progress(setup.rounds, "rounds", show=show) as step:
            try:
                step(network.recorded)
                for t in network.rounds(pool.submit if workers > 1 else _at_once):
                    recorder.record(t, network.models(t), *network.metrics[t % 2])
                    resume.finish(t)
                    step()
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
    return recorder.finish(network.models(setup.rounds), ledger, setup.settings(), network.coordinates)


class LocalNetwork:
    """All nodes of a run in one process, and their models after the last two rounds.

    A node waits only for the messages that it needs, so it may begin the next round before other nodes have
    completed this one. No node is more than two rounds ahead of the last recorded round, so the
    models of two rounds are kept.

    metrics : (2, 2, sites, repeats); metrics[t % 2] has each site's mean loss and accuracy on its own rows
        after round t.
    """

    def __init__(self, setup: Setup, ledger: Ledger, *, parts: int, resume: ResumedRun | None = None) -> None:
        n, prepared, problem = setup.graph.n, setup.prepared, setup.problem
        self.setup, self.resume = setup, resume
        self.recorded = 0 if resume is None else resume.start
        self.metrics = np.full((2, 2, n, setup.repeats), np.nan)
        bounds = np.linspace(0, n, min(n, parts) + 1).astype(int).tolist()
        self.cuts = [range(a, b) for a, b in pairwise(bounds)]
        self._models: list[dict[int, Array]] = [{}, {}]  # references to the nodes' arrays, not copies
        self.messages = Messages(prepared, setup.graph, self.cuts)
        objectives = [problem.site(i) for i in range(n)]
        self.nodes = prepared.nodes(objectives, self.cuts, seed=setup.seed, repeats=setup.repeats)
        first = prepared.first(range(n), setup.repeats, setup.seed)
        self.coordinates: Array | None = None
        self.loops: list[Rounds] = []
        for own, node in zip(self.cuts, self.nodes, strict=True):
            if resume is not None and resume.checkpoint is not None and resume.start:
                state = node.restored(resume.start, resume.checkpoint.load_states(resume.start, own))
                charge_again(node, ledger, state.t)
            else:
                heard = None if first is None else self.messages.known_to(own, first)
                state = node.start(None if first is None else first[own.start : own.stop], heard)
            self.loops.append(charged(loop(node, state), ledger))

    def models(self, t: int) -> Array:
        """The models of all sites after round t, (sites, repeats, d); t is one of the last two rounds."""
        return np.concatenate([self._models[t % 2][k] for k in range(len(self.cuts))])

    def rounds(self, submit: Callable[..., object]) -> Iterator[int]:
        """Run all nodes, and yield the number of each round as soon as all nodes have completed it."""
        last = self.setup.rounds
        known = [self.recorded] * len(self.cuts)  # the last round that each node has completed
        sent = known.copy()  # the last round whose message each node has sent
        waits: dict[int, list[int]] = {}  # for each idle node, the nodes from which it may lack a message
        idle, ended = set(range(len(self.cuts))), SimpleQueue[tuple[int, BaseException | None]]()

        def work(k: int, advance: Callable[[int], None]) -> None:
            try:
                advance(k)
            except BaseException as error:
                ended.put((k, error))
            else:
                ended.put((k, None))

        begun = [False] * len(self.cuts)
        while self.recorded < last:
            for k in sorted(idle, key=sent.__getitem__):
                if k not in waits:
                    waits[k] = list(self.messages.needs(k, sent[k])) if begun[k] else []
                missing = waits[k]
                while missing and sent[missing[-1]] >= sent[k]:
                    missing.pop()
                if not missing and sent[k] <= self.recorded + 2 and known[k] < last:
                    idle.remove(k)
                    del waits[k]
                    submit(work, k, self._go_on if begun[k] else self._begin)
            k, error = ended.get()
            if error is not None:
                raise error
            if begun[k]:
                known[k] += 1
            begun[k] = True
            sent[k] = min(known[k] + 1, last)
            idle.add(k)
            while self.recorded < min(known):
                self.recorded += 1
                yield self.recorded

    def _begin(self, k: int) -> None:
        """Compute the first message of node k, charge it, and put it into `messages`."""
        self.messages.put(k, next(self.loops[k]))

    def _go_on(self, k: int) -> None:
        """Compute the next state and message of node k, from the messages of its last round."""
        t = self.messages.sent[k]
        try:
            sent = self.loops[k].send(self.messages.heard(k, t))
        except StopIteration as end:
            state = end.value
        else:
            state = sent.state
        self._look_at(k, state)
        if state.t < self.setup.rounds:
            self.messages.put(k, sent)

    def _look_at(self, k: int, state: Any) -> None:
        """Keep the models and metrics of node k after a round; save its state if a checkpoint is due."""
        own, node, at = slice(self.cuts[k].start, self.cuts[k].stop), self.nodes[k], state.t % 2
        models = self._models[at][k] = node.models(state)
        if k == 0 and state.t == self.setup.rounds:
            self.coordinates = self.setup.prepared.coordinates(node, state)
        if self.setup.measure:
            self.metrics[at, :, own] = node.metrics(models)
        if self.resume is not None and (checkpoint := self.resume.due(state.t)) is not None:
            checkpoint.save_states(state.t, int(node.sites[0]), node.saved(state))


def _digests(setup: Setup) -> list[str]:
    """The hash of every site's rows; a checkpoint of the same run has the same hashes."""
    problem = setup.problem
    return [size.digest for size in survey([problem.site(i) for i in range(problem.n)], digest=True)]


def _at_once(work: Callable[..., None], *arguments: object) -> None:
    """An executor that runs everything in the calling thread."""
    work(*arguments)


class Messages:
    """The messages of the last two rounds. Neighbours' vectors are added up in the order of site numbers.

    sent : for each node, the last round in which it sent a message.
    """

    def __init__(self, prepared: PreparedMethod, graph: Graph, cuts: Sequence[range]) -> None:
        self._prepared, self._cuts = prepared, cuts
        adjacency = graph.sparse_adjacency
        self._hears = [adjacency[own.start : own.stop] for own in cuts]
        owner = np.repeat(np.arange(len(cuts)), [len(own) for own in cuts])
        self._near = [{k, *owner[rows.indices].tolist()} for k, rows in enumerate(self._hears)]
        self._everybody = set(range(len(cuts)))
        self._vectors: Array | None = None
        self._sums: list[dict[int, Any]] = [{}, {}]
        self._total: tuple[int, Any] | None = None
        self._lock = threading.Lock()
        self.sent = [0] * len(cuts)

    def needs(self, k: int, t: int) -> set[int]:
        """The nodes whose messages of round t node k needs before it can continue."""
        return self._near[k] if self._prepared.hears(t) == "neighbours" else self._everybody

    def put(self, k: int, sent: Send) -> None:
        """Store the message that node k sent."""
        t, own = sent.t, slice(self._cuts[k].start, self._cuts[k].stop)
        if self._prepared.hears(t) == "neighbours":
            with self._lock:
                if self._vectors is None:
                    shape = (2, self._cuts[-1].stop, *sent.message.shape[1:])
                    self._vectors = np.empty(shape, dtype=sent.message.dtype)
            self._vectors[t % 2, own] = sent.message
        else:
            self._sums[t % 2][k] = sent.message.sum(axis=0, dtype=sent.message.dtype)
        self.sent[k] = t

    def heard(self, k: int, t: int) -> Any:
        """What node k receives in round t: the sum over each site's neighbours, or the sum of all sites."""
        if self._prepared.hears(t) == "neighbours":
            if self._vectors is None:
                raise LookupError(f"no message of round {t} was sent")
            return self._add_up(k, self._vectors[t % 2])
        with self._lock:
            if self._total is None or self._total[0] != t:
                parts = self._sums[t % 2]
                total = parts[0].copy()
                for number in range(1, len(parts)):
                    total += parts[number]
                self._total = t, total
            return self._total[1]

    def known_to(self, own: range, vectors: Array) -> Array:
        """For each site in `own`, the sum of its neighbours' vectors; `vectors` has one vector per site."""
        return self._add_up(self._cuts.index(own), vectors)

    def _add_up(self, k: int, vectors: Array) -> Array:
        flat = vectors.reshape(len(vectors), -1)
        return np.asarray(self._hears[k] @ flat).reshape(-1, *vectors.shape[1:])
