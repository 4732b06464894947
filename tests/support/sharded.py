"""A run cut into shards that take turns in this process: what a cluster does, without the cluster."""

from __future__ import annotations

import numpy as np

from taciturn.engines.partition import cut
from taciturn.engines.setup import prepare
from taciturn.engines.shards import Shard, ShardTask


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


def make_shards(setup, shards):
    parts = cut(setup.graph, shards)
    objectives = [[setup.problem.site(i) for i in part.own] for part in parts]
    return [Shard(ShardTask.of(setup, part), own) for part, own in zip(parts, objectives, strict=True)]


def run_shards(shards, rounds, *, each=lambda t, shards: None):
    """Rounds t + 1..rounds: [(losses, accuracies, total, gap) of every shard] per round."""
    record, mean, blocks = [], None, [[] for _ in shards]
    for t in range(shards[0].t + 1, rounds + 1):
        for shard, block in zip(shards, blocks, strict=True):
            shard.receive(block)
        each(t - 1, shards)
        stepped = [shard.step(mean) for shard in shards]
        mean = np.sum([part.total for part in stepped], axis=0) / sum(len(shard.part.own) for shard in shards)
        blocks = exchange([shard.part for shard in shards], [shard.outgoing() for shard in shards])
        record.append(stepped)
    return record


def exchange(parts, outgoing):
    """What every shard receives, from what every shard hands out."""
    sent = {
        (a, b): block
        for a, part in enumerate(parts)
        for b, block in zip(part.outbound, outgoing[a], strict=True)
    }
    return [[sent[a, b] for a in part.inbound] for b, part in enumerate(parts)]


def vectors(shards):
    return np.concatenate([shard.f for shard in shards])
