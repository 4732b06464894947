"""Which engine should be faster, for engine="auto".

    local   T (n SITE + (s SMALL + entries ENTRY) / cores)
    ray     start + T (ROUND + (n SITE + s SMALL + entries ENTRY) / shards)

T rounds, n sites that the general solver takes, s repeats of the small ones that a kernel solves, and
entries = rows x features x repeats of all sites. Python's part of the work holds the interpreter's lock, so
that the local engine's threads do not shorten it; shards do. `docs/scale.md` says how the constants were
measured, and `python -m benchmarks.scale` measures them again.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..methods.base import AnyProblem
from ..objective.solver.small.sites import is_small
from ..objective.sources import SourcedProblem
from .setup import Setup

SITE = 0.55e-3
"""Seconds of Python per round and site that is not small."""
SMALL = 6e-6
"""Seconds per round and repeat of a small site, beside its entries."""
ENTRY = 4e-9
"""Seconds per row, feature, repeat and round."""
ROUND = 4e-3
"""Seconds that a round costs a cluster, beside the work."""
START = 4.0
"""Seconds to start a cluster here and its workers."""
JOIN = 1.5
"""Seconds to start workers on a cluster that runs already."""


THREADED = 800_000
"""Rows x features x repeats of a site from which on a second thread helps instead of waiting for the lock."""
PASSED = 200_000
"""The same threshold for methods that pass once over the rows and solve nothing."""
SHARED = 2e-3
"""Seconds of work in the kernels per round from which on it is worth sharing."""


def threads_for(setup: Setup) -> int:
    """How many threads the local engine should use: all cores, or one where they would wait for the lock."""
    problem = setup.problem
    if isinstance(problem, SourcedProblem):
        return 1
    if not setup.prepared.solves:
        entries = int(problem.samples.max()) * problem.dimension * setup.repeats
        return cpus_here() if setup.seed is None or entries >= PASSED else 1
    entries = int(problem.samples.sum()) * problem.dimension * setup.repeats
    small = _small_sites(problem)
    if 2 * small >= problem.n:
        shared = small * setup.repeats * SMALL + entries * ENTRY >= SHARED
    else:
        shared = entries >= THREADED * problem.n
    return cpus_here() if shared else 1


def _small_sites(problem: AnyProblem) -> int:
    """How many sites the kernels solve; sites whose rows are not loaded yet do not count."""
    if isinstance(problem, SourcedProblem):
        return 0
    return sum(is_small(problem.site(i)) for i in range(problem.n))


def choose(setup: Setup) -> str:
    """ "local" or "ray", for this run on this machine, or on the cluster that this process has joined."""
    if setup.seed is None or not setup.prepared.solves or importlib.util.find_spec("ray") is None:
        return "local"
    problem = setup.problem
    rows = 0 if isinstance(problem, SourcedProblem) else int(problem.samples.sum()) * problem.dimension
    cpus, start = _cluster()
    small = _small_sites(problem)
    return faster(
        sites=setup.graph.n - small,
        small=small * setup.repeats,
        rounds=setup.rounds,
        entries=rows * setup.repeats,
        cores=cpus_here(),
        shards=min(cpus, setup.graph.n),
        start=start,
    )


def choose_for_jobs(seconds: float, jobs: int) -> str:
    """ "local" or "ray", for independent jobs that take so many seconds each, one at a time."""
    if jobs == 0 or importlib.util.find_spec("ray") is None:
        return "local"
    cpus, start = _cluster()
    return "ray" if start + seconds * math.ceil(jobs / cpus) < seconds * jobs else "local"


def faster(
    *, sites: int, small: int = 0, rounds: int, entries: int, cores: int, shards: int, start: float
) -> str:
    """ "local" or "ray", by the model above; "local" where they are equal.

    >>> faster(sites=100, rounds=50, entries=10**6, cores=2, shards=2, start=START)
    'local'
    >>> faster(sites=10_000, rounds=50, entries=10**6, cores=2, shards=2, start=START)
    'ray'
    >>> faster(sites=0, small=10_000, rounds=50, entries=10**6, cores=2, shards=2, start=START)
    'local'
    """
    python, kernels = sites * SITE, small * SMALL + entries * ENTRY
    local = rounds * (python + kernels / cores)
    cluster = start + rounds * (ROUND + (python + kernels) / shards)
    return "ray" if cluster < local else "local"


_limit: ContextVar[int | None] = ContextVar("cpus", default=None)


def cpus_here() -> int:
    """The cores that this process may use."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cpus, _limit.get() or cpus)


@contextmanager
def limited_to(cpus: int) -> Iterator[None]:
    """Inside, `cpus_here` is at most `cpus`: for one of many jobs on a machine."""
    before = _limit.set(cpus)
    try:
        yield
    finally:
        _limit.reset(before)


def _cluster() -> tuple[int, float]:
    """The CPUs of the cluster that Ray would use, and the seconds until it works; does not load Ray."""
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        return max(1, int(ray.cluster_resources().get("CPU", 1))), JOIN
    return cpus_here(), JOIN if "RAY_ADDRESS" in os.environ else START
