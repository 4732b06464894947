"""Independent jobs on a cluster. Each job is one Ray task, which is not repeated if it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from ...core.errors import WorkerLost
from ..engine_selection import cpus_here, limited_to
from .cluster import cluster
from .worker import fetch


def scatter(
    run: Callable[[Any], Any], items: Sequence[Any], *, address: str | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield (position, run(item)) for all items, in the order in which the jobs finish. A job uses one CPU.

    An error in `run` ends all jobs. If a worker process is lost, the other jobs continue, and an error at the
    end states how many jobs were lost.
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
