"""RayEngine: carries out a run on a Ray cluster, and resumes from a checkpoint if a worker was lost.

Each worker process computes the rounds of some sites. The driver, in the calling process, directs them all.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError

from ...core import checks
from ...core.errors import ParameterError, WorkerLost
from ...core.progress import ProgressStep, progress
from ...methods.run import Run
from ...objective.sources import Size, SourcedProblem
from ..checkpoint import Checkpoint, check_resumable
from ..engine_selection import cpus_here
from ..setup import Setup
from ..shards import Part, cut
from .cluster import cluster
from .driver import Driver
from .worker import crew, fetch

_TRIES = 3  # attempts from the same checkpoint before the engine gives up


@dataclass(frozen=True)
class RayEngine:
    """Runs simulations on a Ray cluster: `taciturn.simulate(..., engine=RayEngine(...))`.

    Parameters
    ----------
    address : "host:port" of a running cluster. None uses the cluster that this process has joined, or else
        the cluster at $RAY_ADDRESS. If neither exists, the engine starts a cluster on this machine for the
        duration of the run.
    shards : the number of worker processes that share the sites; by default one per CPU of the cluster.
    checkpoint : a folder that the driver and all workers can access. If a worker is lost, the run resumes
        from the newest checkpoint. If the driver is lost, call `simulate` again with the same arguments.
    every : the number of rounds between checkpoints, a multiple of 10. The solver restarts every 10 rounds,
        so a resumed run gives the same bits as an uninterrupted run.
    """

    address: str | None = None
    shards: int | None = None
    checkpoint: str | os.PathLike[str] | None = None
    every: int = 10

    def __post_init__(self) -> None:
        if self.shards is not None:
            checks.whole("shards", self.shards, least=1)
        Checkpoint.at(self.checkpoint or "", self.every)

    def run(self, setup: Setup, *, show: bool | None = None) -> Run:
        """Run all rounds of `setup`. The local engine gives the same vectors, to the last bit."""
        if setup.seed is None:
            raise ParameterError(
                "`seed` must be given on a cluster: secret noise cannot be drawn again when a worker is lost."
            )
        check_resumable(setup, self.checkpoint)
        saver = None if self.checkpoint is None else Checkpoint.at(self.checkpoint, self.every)
        with (
            nullcontext() if saver is None else saver.held(),
            cluster(self.address, self.shards or cpus_here()),
            progress(setup.rounds, "rounds", show=show) as step,
        ):
            return self._attempts(setup, saver, step)

    def _attempts(self, setup: Setup, saver: Checkpoint | None, step: ProgressStep) -> Run:
        """Run with new workers until an attempt succeeds. Without a checkpoint, there is only one attempt.

        The method raises `WorkerLost` if that attempt loses a worker. With a checkpoint, it raises the error
        if _TRIES attempts in a row start at the same round and lose a worker.
        """
        parts = cut(setup.graph, self.shards or max(1, int(ray.cluster_resources().get("CPU", 1))))
        start, reached, lost = -1, 0, 0
        while True:
            try:
                with crew(parts, setup.problem) as workers:
                    driver = _driver(setup, parts, workers, saver)
                    step(driver.start - reached)
                    lost = lost if driver.start == start else 0
                    start = reached = driver.start
                    try:
                        return driver.run(step)
                    finally:
                        reached = driver.t
            except RayError as error:
                lost += 1
                if saver is None or lost == _TRIES:
                    raise WorkerLost(_explain(start, reached, saver)) from error


def _driver(setup: Setup, parts: list[Part], workers: list[Any], saver: Checkpoint | None) -> Driver:
    """A driver for workers that have loaded their sites.

    If the rows come from sources, the workers report the number of rows of each site and their dimension,
    and this function checks these numbers. With a checkpoint, they report a hash of each site's rows.
    """
    sizes: list[Size] = []
    if saver is not None or isinstance(setup.problem, SourcedProblem):
        asked = [worker.survey.remote(saver is not None) for worker in workers]
        sizes = [size for part in fetch(asked) for size in part]
    if isinstance(setup.problem, SourcedProblem):
        setup = setup.on(setup.problem.with_sizes(sizes))
    return Driver(setup, parts, workers, saver, [size.digest for size in sizes])


def _explain(start: int, reached: int, saver: Checkpoint | None) -> str:
    """The text of the error about a lost worker, with the cause and the fix."""
    if start < 0:
        return "the workers did not start or load their rows; `taciturn` must be installed on every node."
    if saver is None:
        return (
            f"a worker was lost after round {reached}, so the run is lost; "
            "give the engine a `checkpoint` folder, from which a run can resume."
        )
    return (
        f"{_TRIES} attempts in a row from round {start} lost a worker, the last one after round {reached}; "
        f"call again to resume from the checkpoint in {saver.folder}."
    )
