"""One process: all sites of a run side by side, in a few batches over the threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from ..objective.sources import SourcedProblem, survey
from ..privacy.ledger.memory import Ledger, MemoryLedger
from ..progress import progress
from ..types import Array
from .checkpoint import Checkpoint, fingerprint
from .choice import threads_for
from .setup import Setup
from .shards import SavedStates


def run_local(
    setup: Setup,
    *,
    ledger: Ledger | None = None,
    threads: int | None = None,
    show: bool | None = None,
    checkpoint: Checkpoint | None = None,
) -> Run:
    """Drive every node of `setup` through all rounds: sites over threads, one BLAS thread each.

    Every release is charged to `ledger` first; one in memory is begun where none is given. A simulation with
    a `checkpoint` goes on from its newest one, and repeats every bit.
    """
    if isinstance(setup.problem, SourcedProblem):
        setup = setup.on(setup.problem.load())
    if ledger is None:
        ledger = MemoryLedger(setup.run_facts(), setup.site_facts())
    workers = threads or threads_for(setup)
    network = Network(setup, ledger, parts=8 * workers)
    recorder = Recorder(setup.rounds, setup.repeats, history=setup.history)
    resume = None if checkpoint is None else _Resume(checkpoint, setup)
    start = 0 if resume is None else resume.restore(network, recorder)
    with (
        one_blas_thread(),
        ThreadPoolExecutor(workers) as pool,
        progress(setup.rounds, "rounds", show=show) as step,
    ):
        try:
            step(start)
            for t in network.rounds(pool, start, every=None if checkpoint is None else checkpoint.every):
                recorder.record(t, network.f[t % 2], *network.metrics[t % 2])
                if resume is not None:
                    resume.save(t, network, recorder)
                step()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return recorder.finish(network.f[setup.rounds % 2], ledger, setup.settings())


class _Resume:
    """The checkpoints of one run in one process, such as a cluster would write and read them too."""

    def __init__(self, checkpoint: Checkpoint, setup: Setup) -> None:
        problem = setup.problem
        sizes = survey([problem.site(i) for i in range(problem.n)], digest=True)
        self.checkpoint, self.setup = checkpoint, setup
        self.fingerprint = fingerprint(setup, [size.digest for size in sizes])

    def restore(self, network: Network, recorder: Recorder) -> int:
        """The round to go on from; 0 where there is no checkpoint yet."""
        start = self.checkpoint.latest(self.fingerprint)
        if start:
            self.checkpoint.restore(start, recorder)
            network.restore(self.checkpoint.load_states(start, range(self.setup.graph.n)))
            for t in range(1, start + 1):
                network.ledger.charge_round(self.setup.charges(t))
        return start

    def save(self, t: int, network: Network, recorder: Recorder) -> None:
        """Keep round t where it is due."""
        if self.checkpoint.due(t):
            self.checkpoint.save_states(network.states(t))
            self.checkpoint.finish(t, self.fingerprint, recorder)


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
        self._resumed = 0  # the round whose end is in `lam` already
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

    def rounds(self, pool: ThreadPoolExecutor, start: int = 0, every: int | None = None) -> Iterator[int]:
        """Drive all sites, and yield every round as soon as all have released in it.

        After every so many rounds nobody begins the next one before the last has been yielded.
        """
        done, told, last = [start] * len(self.parts), start, self.setup.rounds
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
                pause = last if every is None else min(last, (told // every + 1) * every)
                if t <= min(pause, told + 2) and all(done[j] >= t - 1 for j in self.needs[k]):
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
        if t - 1 > self._resumed:
            batch.hear(t - 1, before, heard)
        batch.check_history(t, before, heard)
        f = try_solve(batch.streams, partial(batch.primal, t, before, heard))
        self.ledger.charge_round(self.setup.charges(t, part)._replace(aborted=f is None))
        if f is None:
            raise given_up(t)
        self.f[t % 2, own] = f
        if self.setup.measure:
            self.metrics[t % 2, :, own] = batch.solvers.metrics(f)

    def states(self, t: int) -> SavedStates:
        """What all sites hold at the end of round t, while nobody is at work."""
        heard = np.concatenate([self._heard(k, t) for k in range(len(self.parts))])
        ended = []
        for part, batch in zip(self.parts, self.batches, strict=True):
            own, before = slice(part.start, part.stop), batch.lam.copy()
            batch.hear(t, self.f[t % 2, own], heard[own])
            ended.append(batch.lam.copy())
            batch.lam[:] = before
        return SavedStates(t, 0, self.f[t % 2].copy(), np.concatenate(ended), heard)

    def restore(self, saved: Sequence[SavedStates]) -> None:
        """Go back to the states of a checkpoint, whoever wrote them."""
        for states in saved:
            sites = slice(states.first, states.first + len(states.f))
            self.f[states.t % 2, sites] = states.f
            for part, batch in zip(self.parts, self.batches, strict=True):
                first, last = max(part.start, sites.start), min(part.stop, sites.stop)
                if first < last:
                    batch.lam[first - part.start : last - part.start] = states.lam[
                        first - sites.start : last - sites.start
                    ]
            self._resumed = states.t

    def _heard(self, k: int, t: int) -> Array:
        """sum_j f_j(t) for every site of part k, added in increasing j as every engine does."""
        f = self.f[t % 2]
        return np.asarray(self.hears[k] @ f.reshape(len(f), -1)).reshape(-1, *f.shape[1:])
