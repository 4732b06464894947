"""One process: all sites of a run side by side, in a few batches over the threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from queue import SimpleQueue

import numpy as np

from ..admm.batch import Batch
from ..admm.reach import given_up, try_solve
from ..admm.run import Recorder, Run
from ..objective.solver.many import ManySites
from ..objective.solver.threads import one_blas_thread
from ..objective.sources import SourcedProblem
from ..privacy.ledger.memory import Ledger, MemoryLedger
from ..progress import progress
from ..types import Array
from .choice import threads_for
from .setup import Setup


def run_local(
    setup: Setup, *, ledger: Ledger | None = None, threads: int | None = None, show: bool | None = None
) -> Run:
    """Drive every node of `setup` through all rounds: sites over threads, one BLAS thread each.

    Every release is charged to `ledger` first; one in memory is begun where none is given.
    """
    if isinstance(setup.problem, SourcedProblem):
        setup = setup.on(setup.problem.load())
    if ledger is None:
        ledger = MemoryLedger(setup.run_facts(), setup.site_facts())
    workers = threads or threads_for(setup)
    network = Network(setup, ledger, parts=8 * workers)
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
    return recorder.finish(network.f[setup.rounds % 2], ledger, setup.settings())


class Network:
    """All nodes of a run, and what they released in the last two rounds.

    A site waits for its neighbours, not for everybody: threads that have no more to do in this round begin
    the next one. Nobody is more than a round ahead of the slowest, so two rounds of vectors are all there is.

    f : (2, sites, repeats, d), round t in f[t % 2].
    metrics : (2, 2, sites, repeats), each site's mean loss and accuracy on its own rows, likewise.
    """

    def __init__(self, setup: Setup, ledger: Ledger, *, parts: int) -> None:
        n, start = setup.graph.n, setup.start_vectors()
        self.setup, self.ledger = setup, ledger
        self.f = np.stack([start, np.empty_like(start)])
        self.metrics = np.full((2, 2, n, setup.repeats), np.nan)
        bounds = np.linspace(0, n, min(n, parts) + 1).astype(int).tolist()
        self.parts = [range(a, b) for a, b in pairwise(bounds)]
        adjacency = setup.graph.sparse_adjacency
        self.hears = [adjacency[part.start : part.stop] for part in self.parts]
        owner = np.repeat(np.arange(len(self.parts)), [len(part) for part in self.parts])
        self.needs = [{k, *owner[hears.indices].tolist()} for k, hears in enumerate(self.hears)]
        solvers = ManySites([setup.problem.site(i) for i in range(n)])
        streams = setup.streams()
        self.batches = [
            Batch(
                sites=np.array(part),
                solvers=solvers.part(part.start, part.stop),
                degrees=setup.graph.degrees[part.start : part.stop],
                tables=setup.tables.part(part),
                tol=setup.tol,
                streams=streams,
                refresh=setup.refresh,
                lam=np.zeros_like(start[part.start : part.stop]),
            )
            for part in self.parts
        ]

    def rounds(self, pool: ThreadPoolExecutor) -> Iterator[int]:
        """Drive all sites, and yield every round as soon as all have released in it."""
        done, told, last = [0] * len(self.parts), 0, self.setup.rounds
        idle, ended = set(range(len(self.parts))), SimpleQueue[tuple[int, BaseException | None]]()

        def work(k: int, t: int) -> None:
            try:
                self._advance(k, t)
            except BaseException as error:
                ended.put((k, error))
            else:
                ended.put((k, None))

        while told < last:
            for k in sorted(idle, key=done.__getitem__):
                t = done[k] + 1
                if t <= min(last, told + 2) and all(done[j] >= t - 1 for j in self.needs[k]):
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
        """Round t of the sites of part k; charged before any of it can be seen."""
        part, batch = self.parts[k], self.batches[k]
        own = slice(part.start, part.stop)
        before, heard = self.f[(t - 1) % 2, own], self._heard(k, t - 1)
        if t > 1:
            batch.hear(t - 1, before, heard)
        batch.check_history(t, before, heard)
        f = try_solve(batch.streams, partial(batch.primal, t, before, heard))
        self.ledger.charge_round(self.setup.charges(t, part)._replace(aborted=f is None))
        if f is None:
            raise given_up(t)
        self.f[t % 2, own] = f
        if self.setup.measure:
            self.metrics[t % 2, :, own] = batch.solvers.metrics(f)

    def _heard(self, k: int, t: int) -> Array:
        """sum_j f_j(t) for every site of part k, added in increasing j as every engine does."""
        f = self.f[t % 2]
        return np.asarray(self.hears[k] @ f.reshape(len(f), -1)).reshape(-1, *f.shape[1:])
