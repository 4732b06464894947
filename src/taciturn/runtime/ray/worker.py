"""The Ray actor that computes a shard (a group of sites), and `crew`: all workers of a run."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError
from threadpoolctl import threadpool_limits

from ...core.errors import TaciturnError, WorkerLost
from ...core.types import Array
from ...core.versions import versions
from ...methods.base import AnyProblem
from ...objective.sources import Size, Source, SourcedProblem, open_site, survey
from ..checkpoint import Checkpoint
from ..shards import Part, Shard, ShardTask

PATIENCE = 60.0
"""Seconds to wait for free CPUs on the cluster."""


class Worker:
    """The actor in a worker process. Ray runs the calls of its methods one at a time, in order."""

    def __init__(self) -> None:
        self._one_thread = threadpool_limits(limits=1, user_api="blas")

    def versions(self) -> dict[str, str]:
        """The package versions on which the bits of a result depend."""
        return versions()

    def take(self, objectives: list[Any]) -> None:
        """Store the sites (their objectives with their rows) that the driver sends."""
        self.objectives: list[Any] = objectives

    def open(self, first: int, sources: Sequence[Source], terms: dict[str, Any]) -> None:
        """Load sites first, first + 1, ... from their sources. All sites share the parameters `terms`."""
        self.objectives = [open_site(source, first + k, **terms) for k, source in enumerate(sources)]

    def survey(self, digest: bool) -> list[Size]:
        """The sizes of this worker's sites; with `digest`, also the hashes of their rows."""
        return survey(self.objectives, digest=digest)

    def begin(self, task: ShardTask, saver: Checkpoint | None, t: int) -> None:
        """Prepare the shard for round t + 1."""
        self.shard = Shard(task, self.objectives, saver, t)

    def step(self, save: bool, mean: Array | None, *heard: Any) -> Any:
        """Complete the previous round with the messages `heard`, and compute the next round.

        Returns (report, *messages to send), or the report alone if there are no messages to send.
        """
        report, sent = self.shard.receive(heard, mean, save=save), self.shard.compute()
        return (report, *sent) if sent else report

    def finish(self, mean: Array | None, *heard: Any) -> Any:
        """Complete the final round."""
        return self.shard.receive(heard, mean, save=False)

    def gap(self, mean: Array) -> Array:
        """The largest distance of a site's last model from `mean`."""
        return self.shard.gap(mean)

    def vectors(self) -> Array:
        """The last models of this worker's sites, (sites, repeats, d)."""
        return self.shard.models

    def coordinates(self) -> Array | None:
        """The whitened coordinates of the run; None without whitening."""
        return self.shard.coordinates

    def usage(self) -> tuple[float, int]:
        """The CPU seconds and the peak memory in bytes that this process has used so far."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return time.process_time(), peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def crew(parts: Sequence[Part], problem: AnyProblem) -> Iterator[list[Any]]:
    """A block with one worker per part, each with its sites loaded. At its end, all workers are killed.

    Ray neither restarts a lost worker nor repeats a step that failed (`max_restarts`, `max_task_retries`). If
    there are more workers than CPUs, the workers reserve no CPU, so that all of them can start.
    """
    cpus = 1 if len(parts) <= ray.cluster_resources().get("CPU", 0) else 0
    options = {"max_restarts": 0, "max_task_retries": 0, "num_cpus": cpus, "scheduling_strategy": "SPREAD"}
    remote = ray.remote(**options)(Worker)
    workers = [remote.remote() for _ in parts]
    try:
        _check_versions(workers)
        fetch([_load(worker, part.own, problem) for worker, part in zip(workers, parts, strict=True)])
        yield workers
    finally:
        for worker in workers:
            ray.kill(worker)


def fetch(references: Sequence[Any]) -> list[Any]:
    """The values of Ray references. An error of a worker is raised unchanged."""
    try:
        return list(ray.get(list(references)))
    except RayTaskError as error:
        if isinstance(error.cause, TaciturnError | RayError):
            raise error.cause from None
        raise error.cause from error


def _load(worker: Any, own: range, problem: AnyProblem) -> Any:
    if isinstance(problem, SourcedProblem):
        return worker.open.remote(own.start, problem.sources[own.start : own.stop], problem.terms)
    return worker.take.remote([problem.site(i) for i in own])


def _check_versions(workers: Sequence[Any]) -> None:
    """Check that all workers have started, and have the driver's package versions.

    With other versions the results could differ in their last bits.
    """
    asked = [worker.versions.remote() for worker in workers]
    ready, waiting = ray.wait(asked, num_returns=len(asked), timeout=PATIENCE)
    if waiting:
        raise WorkerLost(
            f"{len(waiting)} of {len(asked)} workers found no free CPU on the cluster within "
            f"{PATIENCE:.0f} s; ask for fewer `shards`, or wait until the cluster is less busy."
        )
    for found in fetch(ready):
        for package, here in versions().items():
            if found.get(package) != here:
                raise WorkerLost(
                    f"a worker has {package} {found.get(package)}, the driver has {here}; install the "
                    "driver's version on all nodes."
                )
