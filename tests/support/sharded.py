"""A run in shards that take turns in this process, as on a cluster."""

from __future__ import annotations

import numpy as np

from taciturn.runtime.setup import prepare
from taciturn.runtime.shards import Shard, ShardTask, cut


def setup_of(
    problem, graph, method, *, rounds, repeats=1, seed=0, tol=1e-8, start="zeros", history=False, strict=True
):
    return prepare(
        problem,
        graph,
        method,
        rounds=rounds,
        repeats=repeats,
        seed=seed,
        tol=tol,
        start=start,
        strict=strict,
        history=history,
    )


def make_shards(setup, shards, *, saver=None, t=0):
    """The shards of a run, before its first round or at round t of what `saver` keeps."""
    parts = cut(setup.graph, shards)
    objectives = [[setup.problem.site(i) for i in part.own] for part in parts]
    tasks = [ShardTask.of(setup, part) for part in parts]
    return [Shard(task, own, saver, t) for task, own in zip(tasks, objectives, strict=True)]


def run_shards(shards, rounds, *, due=lambda t: False, each=lambda t: None):
    """Rounds t + 1..rounds: [(losses, accuracies, total, gap) of every shard] per round.

    Where `due(t)`, every shard saves its states after round t; `each(t)` is called after every round.
    """
    record, mean, everybody = [], None, sum(len(shard.part.own) for shard in shards)
    for t in range(shards[0].t + 1, rounds + 1):
        sent = [shard.compute() for shard in shards]
        heard = exchange(shards, sent, t)
        ended = [
            shard.receive(blocks, mean, save=due(t)) for shard, blocks in zip(shards, heard, strict=True)
        ]
        mean = np.sum([part.total for part in ended], axis=0) / everybody
        each(t)
        record.append(ended)
    return record


def exchange(shards, sent, t):
    """What every shard hears of round t, from what every shard hands out."""
    if shards[0].task.prepared.hears(t) == "everybody":
        total = np.sum([blocks[0] for blocks in sent], axis=0)
        return [[total] for _ in shards]
    parts = [shard.part for shard in shards]
    crossing = {
        (a, b): block for a, part in enumerate(parts) for b, block in zip(part.outbound, sent[a], strict=True)
    }
    return [[crossing[a, b] for a in part.inbound] for b, part in enumerate(parts)]


def vectors(shards):
    return np.concatenate([shard.models for shard in shards])
