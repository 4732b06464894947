"""Workers on a cluster: the Ray actor that computes a shard (a group of sites), and independent jobs."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
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
from ..engine_selection import cpus_here, limited_to
from ..shards import Part, Shard, ShardTask
from .cluster import cluster

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
        """Load sites first, first + 1, ... from their sources."""
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
        """End the final round."""
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
    """A context manager that starts one worker per part, lets each load its sites, and kills all at the end.

    Ray retries nothing: with `max_restarts=0` and `max_task_retries=0`, it neither restarts a lost worker nor
    repeats a step that failed.
    """
    cpus = 1 if len(parts) <= ray.cluster_resources().get("CPU", 0) else 0
    remote = ray.remote(max_restarts=0, max_task_retries=0, num_cpus=cpus, scheduling_strategy="SPREAD")(
        Worker
    )
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
            f"{len(waiting)} of {len(asked)} workers found no slot on the cluster within {PATIENCE:.0f} s; "
            "ask for fewer `shards`, or wait until the cluster is less busy."
        )
    for found in fetch(ready):
        for package, here in versions().items():
            if found.get(package) != here:
                raise WorkerLost(
                    f"a worker has {package} {found.get(package)}, the driver has {here}; install the "
                    "driver's version on all nodes."
                )


def scatter(
    run: Callable[[Any], Any], items: Sequence[Any], *, address: str | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield (position, run(item)) for all items, in the order in which the jobs finish. A job uses one CPU.

    Each job is one Ray task, which is not repeated if it fails. An error that `run` raises ends all jobs. If
    a worker is lost, the other jobs continue, and an error at the end reports the lost jobs.
    """
    with cluster(address, cpus_here()):
        remote = ray.remote(max_retries=0, num_cpus=1)(_job)
        pending = {remote.remote(run, item): place for place, item in enumerate(items)}
        lost = 0
        try:
            while pending:
                (done,), _ = ray.wait(list(pending), num_returns=1)
                place = pending.pop(done)
                try:
                    (result,) = fetch([done])
                except RayError:
                    lost += 1
                else:
                    yield place, result
        finally:
            for reference in pending:
                ray.cancel(reference, force=True)
    if lost:
        raise WorkerLost(
            f"{lost} of {len(items)} jobs lost their worker; run the same command again for the lost jobs."
        )


def _job(run: Callable[[Any], Any], item: Any) -> Any:
    with limited_to(1):
        return run(item)
