"""Masked descent on a cluster: every worker adds up what its sites send, the driver what the workers do.

Whole numbers mod 2^64 add up to the same bits in any order, so that the run is that of the local engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...admm.run import Recorder, Run
from ...masked.masks import Message
from ...masked.node import loop
from ...masked.sums import add_up
from ...privacy.facts import Charge
from ...privacy.ledger.memory import MemoryLedger
from ...privacy.release import Release
from ...progress import Step
from ...types import Array
from ..masked import MaskedSetup, NodeTask, make_nodes, state_of, tell_total
from ..partition import Part
from .worker import Worker, crew, fetch


class Answer(NamedTuple):
    """What a worker says of a round: the model, how good it is on its sites' rows, and its next message."""

    f: Array
    metrics: Array
    message: Message | None


class MaskedWorker(Worker):
    """Some sites of a masked run, in a process of the cluster."""

    def prepare(self, task: NodeTask, first: int) -> Message:
        """What its sites send in round 1, added up."""
        start = task.tables.descent.start(task.repeats)
        self.loops = [
            loop(node, start, commit=lambda release: None)  # the driver has charged it
            for node in make_nodes(task, self.objectives, first)
        ]
        return add_up(next(site).message for site in self.loops)

    def hear(self, total: Message) -> Answer:
        """The sum of everybody's messages; what its sites make of it, and what they send next."""
        answers = [tell_total(total)(site) for site in self.loops]
        f = state_of(answers[0]).f
        f = f.reshape(len(f), -1)
        metrics = np.stack([np.stack(objective.metrics(f)) for objective in self.objectives], axis=1)
        released = [answer.message for answer in answers if isinstance(answer, Release)]
        return Answer(f, metrics, add_up(released) if released else None)


def run_masked_on_cluster(setup: MaskedSetup, parts: Sequence[Part], step: Step) -> Run:
    """All rounds; each is charged before any worker is asked for it."""
    rounds, ledger = setup.tables.rounds, MemoryLedger(setup.run_facts(), setup.site_facts())
    recorder = Recorder(rounds, setup.repeats, history=setup.history)

    def charge(t: int) -> None:
        std = setup.tables.sums[t - 1].std
        ledger.charge_all([Charge(i, t, scale=std) for i in range(setup.facts.sites)])

    with crew(parts, setup.problem, MaskedWorker) as workers:
        charge(1)
        task = setup.node_task()
        total = add_up(fetch([w.prepare.remote(task, part.own.start) for w, part in _each(workers, parts)]))
        for t in range(1, rounds + 1):
            if t < rounds:
                charge(t + 1)
            answers: list[Answer] = fetch([worker.hear.remote(total) for worker in workers])
            f = np.broadcast_to(answers[0].f, (setup.facts.sites, *answers[0].f.shape))
            recorder.record(t, f, *np.concatenate([answer.metrics for answer in answers], axis=1))
            step()
            messages = [answer.message for answer in answers if answer.message is not None]
            total = add_up(messages) if messages else total
    return recorder.finish(f, ledger, setup.settings())


def _each(workers: Sequence[Any], parts: Sequence[Part]) -> zip[tuple[Any, Part]]:
    return zip(workers, parts, strict=True)
