"""One process, batched over repeats: the oracle of the other engines."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np

from ..admm.node import Node, NodeState, loop
from ..admm.run import Recorder, Run
from ..objective.solver.threads import one_blas_thread
from ..objective.sources import SourcedProblem
from ..privacy.facts import Charge
from ..privacy.ledger.memory import Ledger, MemoryLedger
from ..progress import progress
from ..types import Array
from .choice import threads_for
from .setup import Setup

Loop = Generator[Array, Array, NodeState]


def run_local(
    setup: Setup, *, journal: Ledger | None = None, threads: int | None = None, show: bool | None = None
) -> Run:
    """Drive every node of `setup` through all rounds: sites over threads, one BLAS thread each.

    `journal` is charged before the ledger in memory that the run keeps: one on disk, or one with a ceiling.
    """
    if isinstance(setup.problem, SourcedProblem):
        setup = setup.on(setup.problem.load())
    ledger = MemoryLedger(setup.run_facts(), setup.site_facts())
    workers = threads or threads_for(setup)
    network = Network(setup, _charging(journal, ledger), parts=8 * workers)
    recorder = Recorder(setup.rounds, setup.repeats, history=setup.history)
    with (
        one_blas_thread(),
        ThreadPoolExecutor(workers) as pool,
        progress(setup.rounds, "rounds", show=show) as step,
    ):
        try:
            for t in network.rounds(pool):
                recorder.record(t, network.f[t % 2], *network.metrics[t % 2])
                step()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return recorder.finish(network.f[setup.rounds % 2], ledger, setup.facts())


def _charging(journal: Ledger | None, ledger: MemoryLedger) -> Callable[[Charge], None]:
    if journal is None:
        return ledger.charge

    def charge(charge: Charge) -> None:
        journal.charge(charge)
        ledger.charge(charge)

    return charge


class Network:
    """All nodes of a run, and what they released in the last two rounds.

    A site waits for its neighbours, not for everybody: threads that have no more to do in this round begin
    the next one. Nobody is more than a round ahead of the slowest, so two rounds of vectors are all there is.

    f : (2, sites, repeats, d), round t in f[t % 2].
    metrics : (2, 2, sites, repeats), each site's mean loss and accuracy on its own rows, likewise.
    """

    def __init__(self, setup: Setup, charge: Callable[[Charge], None], *, parts: int) -> None:
        n, start = setup.graph.n, setup.start_vectors()
        self.last, self.measure = setup.rounds, setup.measure
        self.f = np.stack([start, np.empty_like(start)])
        self.metrics = np.full((2, 2, n, setup.repeats), np.nan)
        self.parts = [part.tolist() for part in np.array_split(np.arange(n), min(n, parts))]
        adjacency = setup.graph.sparse_adjacency
        self.hears = [adjacency[part] for part in self.parts]
        owner = np.repeat(np.arange(len(self.parts)), [len(part) for part in self.parts])
        self.needs = [{k, *owner[hears.indices].tolist()} for k, hears in enumerate(self.hears)]
        streams = setup.streams()
        self.objectives = [setup.problem.site(i) for i in range(n)]
        self.loops: list[Loop] = [
            loop(
                Node(
                    site=i,
                    objective=self.objectives[i],
                    degree=int(setup.graph.degrees[i]),
                    tables=setup.tables.site(i),
                    tol=setup.tol,
                    streams=streams,
                    repeats=setup.repeats,
                    refresh=setup.refresh,
                ),
                NodeState.start(start[i], heard),
                charge=charge,
            )
            for k, part in enumerate(self.parts)
            for i, heard in zip(part, self._heard(k, 0), strict=True)
        ]

    def rounds(self, pool: ThreadPoolExecutor) -> Iterator[int]:
        """Drive all sites, and yield every round as soon as all have released in it."""
        done, told = [0] * len(self.parts), 0
        idle, ended = set(range(len(self.parts))), SimpleQueue[tuple[int, BaseException | None]]()

        def work(k: int, t: int) -> None:
            try:
                self._advance(k, t)
            except BaseException as error:
                ended.put((k, error))
            else:
                ended.put((k, None))

        while told < self.last:
            for k in sorted(idle, key=done.__getitem__):
                t = done[k] + 1
                if t <= min(self.last, told + 2) and all(done[j] >= t - 1 for j in self.needs[k]):
                    idle.remove(k)
                    pool.submit(work, k, t)
            k, error = ended.get()
            if error is not None:
                raise error
            done[k] += 1
            idle.add(k)
            if min(done) > told:
                told += 1
                yield told

    def _advance(self, k: int, t: int) -> None:
        """Round t of the sites of part k."""
        f, (losses, accuracies) = self.f[t % 2], self.metrics[t % 2]
        for i, heard in zip(self.parts[k], self._heard(k, t - 1), strict=True):
            f[i] = next(self.loops[i]) if t == 1 else self.loops[i].send(heard)
            if self.measure:
                losses[i], accuracies[i] = self.objectives[i].metrics(f[i])

    def _heard(self, k: int, t: int) -> Array:
        """sum_j f_j(t) for every site of part k, added in increasing j as every engine does."""
        f = self.f[t % 2]
        return np.asarray(self.hears[k] @ f.reshape(len(f), -1)).reshape(-1, *f.shape[1:])
