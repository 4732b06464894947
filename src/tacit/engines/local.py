"""One process, batched over repeats: the oracle of the other engines."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from ..admm.node import Node, NodeState, loop
from ..admm.trace import Recorder, Run
from ..objective.sources import SourcedProblem
from ..objective.threads import one_blas_thread
from ..privacy.facts import Charge
from ..privacy.ledger import Ledger, MemoryLedger
from .choice import cpus_here
from .progress import progress
from .setup import Setup

Array = NDArray[np.float64]
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
    network = Network(setup, _charging(journal, ledger))
    recorder = Recorder(setup.rounds, setup.repeats, history=setup.history)
    workers = threads or cpus_here()
    with (
        one_blas_thread(),
        ThreadPoolExecutor(workers) as pool,
        progress(setup.rounds, "rounds", show=show) as step,
    ):
        try:
            for t in range(1, setup.rounds + 1):
                losses, accuracies = network.advance(pool, workers)
                recorder.record(t, network.f, losses, accuracies)
                step()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return recorder.finish(network.f, ledger, setup.facts())


def _charging(journal: Ledger | None, ledger: MemoryLedger) -> Callable[[Charge], None]:
    if journal is None:
        return ledger.charge

    def charge(charge: Charge) -> None:
        journal.charge(charge)
        ledger.charge(charge)

    return charge


class Network:
    """All nodes of a run and the vectors that they released last, f (sites, repeats, d)."""

    def __init__(self, setup: Setup, charge: Callable[[Charge], None]) -> None:
        self.adjacency = setup.graph.sparse_adjacency
        self.f = setup.start_vectors()
        self.heard = self._hear()
        streams = setup.streams()
        self.objectives = [setup.problem.site(i) for i in range(setup.graph.n)]
        self.loops: list[Loop] = [
            loop(
                Node(
                    site=i,
                    objective=objective,
                    degree=int(setup.graph.degrees[i]),
                    plan=setup.plan,
                    tol=setup.tol,
                    streams=streams,
                    repeats=setup.repeats,
                    refresh=setup.refresh,
                ),
                NodeState.start(self.f[i], self.heard[i]),
                charge=charge,
            )
            for i, objective in enumerate(self.objectives)
        ]
        self.started = False
        self.measure = setup.measure

    def advance(self, pool: ThreadPoolExecutor, workers: int) -> tuple[Array, Array]:
        """One round of all sites; each one's mean loss and accuracy on its own rows, (sites, repeats)."""
        n = len(self.loops)
        chunks = np.array_split(np.arange(n), min(n, 8 * workers))
        f = np.empty_like(self.f)
        losses, accuracies = np.full((2, n, self.f.shape[1]), np.nan)

        def work(chunk: NDArray[np.int64]) -> None:
            for i in chunk:
                f[i] = self.loops[i].send(self.heard[i]) if self.started else next(self.loops[i])
                if self.measure:
                    losses[i], accuracies[i] = self.objectives[i].metrics(f[i])

        for future in [pool.submit(work, chunk) for chunk in chunks]:
            future.result()
        self.started = True
        self.f = f
        self.heard = self._hear()
        return losses, accuracies

    def _hear(self) -> Array:
        """sum_j f_j for every site, added in increasing j as every engine does."""
        flat = self.f.reshape(self.f.shape[0], -1)
        return np.asarray(self.adjacency @ flat).reshape(self.f.shape)
