"""The driver of a run on a cluster. Each worker process computes a shard, which is a group of sites.

In each round the driver calls every shard once, charges the ledger, and passes references to messages between
shards. The vectors go from shard to shard, not through the driver. The driver receives only losses, sums and
the models that it records. A call contains the mean model of the last round, and returns the largest distance
of the shard's models from this mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.progress import ProgressStep
from ...core.types import Array
from ...methods.loop import Send, charge_again, charged, loop
from ...methods.run import Recorder, Run
from ...privacy.facts import RoundCharges
from ...privacy.ledger.memory import MemoryLedger
from ..checkpoint import Checkpoint, ResumedRun
from ..setup import Setup
from ..shards import Part, ShardTask, StepResult
from .worker import fetch


class Asked(NamedTuple):
    """The pending results of a round: references to the reports and messages of the shards."""

    reports: list[Any]
    sent: list[list[Any]]


class ClusterState(NamedTuple):
    """The last round, and the inputs of each shard for the next one. The shards store everything else."""

    t: int
    heard: list[list[Any]]


class Driver:
    """One attempt to carry out a run, which starts from the newest checkpoint of the run, if there is one.

    The function `loop` runs nodes, which compute sites. It runs the driver like a node with all sites; the
    driver passes the work on to the shards. `t` is the last round that was recorded.
    """

    def __init__(
        self,
        setup: Setup,
        parts: Sequence[Part],
        workers: Sequence[Any],
        saver: Checkpoint | None,
        digests: Sequence[str],
    ) -> None:
        self.setup, self.parts, self.workers = setup, parts, workers
        self.ledger = MemoryLedger(setup.run_facts(), setup.site_facts())
        self.recorder = Recorder(setup.rounds, setup.repeats, history=setup.history)
        self.resume = ResumedRun(saver, setup, self.recorder, digests)
        self.t = self.start = self.resume.start
        self.mean: Array | None = None
        charge_again(self, self.ledger, self.start)
        tasks = [ShardTask.of(setup, part) for part in parts]
        both = zip(workers, tasks, strict=True)
        fetch([worker.begin.remote(task, saver, self.start) for worker, task in both])

    @property
    def rounds(self) -> int:
        return self.setup.rounds

    def charges(self, t: int) -> RoundCharges:
        """The charges for what all sites release in round t."""
        return self.setup.prepared.charges(t)

    def message(self, state: ClusterState) -> Asked:
        """Ask every shard to end the last round and to compute the next round."""
        reports, sent = [], []
        for worker, part, heard in zip(self.workers, self.parts, state.heard, strict=True):
            count = len(part.outbound) if self._neighbours(state.t + 1) else 1
            step = worker.step.options(num_returns=1 + count)
            replies = step.remote(self.resume.due(state.t) is not None, self.mean, *heard)
            report, *blocks = replies if count else [replies]
            reports.append(report)
            sent.append(blocks)
        return Asked(reports, sent)

    def after(self, state: ClusterState, message: Asked, heard: list[list[Any]]) -> ClusterState:
        return ClusterState(state.t + 1, heard)

    def run(self, step: ProgressStep) -> Run:
        """Run all rounds after the checkpoint."""
        state = ClusterState(self.start, [[] for _ in self.parts])
        steps, answer = charged(loop(self, state), self.ledger), None
        while True:
            try:
                asked: Send = steps.send(answer)
            except StopIteration as end:
                last: ClusterState = end.value
                break
            if asked.t > self.start + 1:
                self._complete(asked.t - 1, asked.message.reports)
                step()
            answer = self._route(asked)
        rows = zip(self.workers, last.heard, strict=True)
        self._complete(self.rounds, [worker.finish.remote(self.mean, *heard) for worker, heard in rows])
        step()
        self._record_gap(self.rounds, fetch([worker.gap.remote(self.mean) for worker in self.workers]))
        (coordinates,) = fetch([self.workers[0].coordinates.remote()])
        return self.recorder.finish(self._vectors(), self.ledger, self.setup.settings(), coordinates)

    def _route(self, asked: Send) -> list[list[Any]]:
        """The inputs of each shard for this round: references to other shards' vectors, or the total."""
        sent = asked.message.sent
        if not self._neighbours(asked.t):
            total = np.sum(fetch([blocks[0] for blocks in sent]), axis=0)
            return [[total] for _ in self.parts]
        crossing = {
            (a, b): block
            for a, (part, blocks) in enumerate(zip(self.parts, sent, strict=True))
            for b, block in zip(part.outbound, blocks, strict=True)
        }
        return [[crossing[a, b] for a in part.inbound] for b, part in enumerate(self.parts)]

    def _complete(self, t: int, reports: Sequence[Any]) -> None:
        """Record round t, and the consensus gap of round t - 1, which the shards report only now."""
        ended: list[StepResult] = fetch(reports)
        if self.mean is not None:
            self._record_gap(t - 1, [part.gap for part in ended])
        self.resume.finish(t - 1)
        recorder = self.recorder
        recorder.loss[:, t - 1] = np.concatenate([part.losses for part in ended]).mean(axis=0)
        recorder.accuracy[:, t - 1] = np.concatenate([part.accuracies for part in ended]).mean(axis=0)
        self.mean = np.sum([part.total for part in ended], axis=0) / self.setup.graph.n
        if recorder.history is not None:
            recorder.history.append(self._vectors().transpose(1, 0, 2))
        self.t = t

    def _neighbours(self, t: int) -> bool:
        return self.setup.prepared.hears(t) == "neighbours"

    def _record_gap(self, t: int, gaps: Sequence[Array | None]) -> None:
        self.recorder.consensus_gap[:, t - 1] = np.max([gap for gap in gaps if gap is not None], axis=0)

    def _vectors(self) -> Array:
        return np.concatenate(fetch([worker.vectors.remote() for worker in self.workers]))
