"""The rounds of a run on a cluster: charge, ask every shard for a round, pass references on.

Boundary vectors go from shard to shard by object reference; the driver sees losses, sums and, at the end, the
model. The mean of a round travels with the next step, which sends back the distances from it: one call per
shard and round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...admm.run import Recorder, Run
from ...privacy.ledger.memory import MemoryLedger
from ...progress import Step
from ...types import Array
from ..checkpoint import Checkpoint, fingerprint
from ..partition import Part
from ..setup import Setup
from ..shards import ShardTask, StepResult
from .worker import fetch

Blocks = dict[tuple[int, int], Any]
"""References to the vectors that cross, by (sender, receiver)."""


class Driver:
    """One attempt at a run, from its newest checkpoint on. `t` is the last round that was recorded."""

    def __init__(
        self,
        setup: Setup,
        parts: Sequence[Part],
        workers: Sequence[Any],
        saver: Checkpoint | None,
        digests: Sequence[str],
    ) -> None:
        self.setup, self.parts, self.workers, self.saver = setup, parts, workers, saver
        self.ledger = MemoryLedger(setup.run_facts(), setup.site_facts())
        self.recorder = Recorder(setup.rounds, setup.repeats, history=setup.history)
        self.fingerprint = "" if saver is None else fingerprint(setup, digests)
        self.t = self.start = 0 if saver is None else saver.latest(self.fingerprint)
        if saver is not None and self.start:
            saver.restore(self.start, self.recorder)
        for t in range(1, self.start + 2):
            self.ledger.charge_round(setup.charges(t))
        fetch(
            [
                worker.begin.remote(ShardTask.of(setup, part), saver, self.start)
                for worker, part in zip(workers, parts, strict=True)
            ]
        )

    def run(self, step: Step) -> Run:
        """All rounds that are left."""
        rounds, mean, blocks = self.setup.rounds, None, None
        for t in range(self.start + 1, rounds + 1):
            save = self.saver is not None and t - 1 > self.start and self.saver.due(t - 1)
            reports, blocks = self._ask(save, mean, blocks)
            if t < rounds:  # while the shards work; before any of them is asked for that round
                self.ledger.charge_round(self.setup.charges(t + 1))
            stepped: list[StepResult] = fetch(reports)
            if mean is not None:
                self._record_gap(t - 1, [part.gap for part in stepped])
            if save and self.saver is not None:
                self.saver.finish(t - 1, self.fingerprint, self.recorder)
            mean = np.sum([part.total for part in stepped], axis=0) / self.setup.graph.n
            self._record(t, stepped)
            step()
        self._record_gap(rounds, fetch([worker.gap.remote(mean) for worker in self.workers]))
        return self.recorder.finish(self._vectors(), self.ledger, self.setup.settings())

    def _ask(self, save: bool, mean: Array | None, blocks: Blocks | None) -> tuple[list[Any], Blocks]:
        """Ask every shard for one round; what it reports, and what crosses after it, by reference."""
        reports: list[Any] = []
        crossing: Blocks = {}
        for s, (worker, part) in enumerate(zip(self.workers, self.parts, strict=True)):
            incoming = [] if blocks is None else [blocks[a, s] for a in part.inbound]
            step = worker.step.options(num_returns=1 + len(part.outbound))
            replies = step.remote(save, mean, *incoming)
            report, *outgoing = replies if part.outbound else [replies]
            reports.append(report)
            crossing.update({(s, b): block for b, block in zip(part.outbound, outgoing, strict=True)})
        return reports, crossing

    def _record(self, t: int, stepped: Sequence[StepResult]) -> None:
        recorder = self.recorder
        recorder.loss[:, t - 1] = np.concatenate([part.losses for part in stepped]).mean(axis=0)
        recorder.accuracy[:, t - 1] = np.concatenate([part.accuracies for part in stepped]).mean(axis=0)
        if recorder.history is not None:
            recorder.history.append(self._vectors().transpose(1, 0, 2))
        self.t = t

    def _record_gap(self, t: int, gaps: Sequence[Array | None]) -> None:
        self.recorder.consensus_gap[:, t - 1] = np.max(
            np.stack([gap for gap in gaps if gap is not None]), axis=0
        )

    def _vectors(self) -> Array:
        return np.concatenate(fetch([worker.vectors.remote() for worker in self.workers]))
