"""Choose the engine that should be faster, for engine="auto", from the predicted seconds of a run:

    local   T (n SITE + (s SMALL + entries ENTRY) / cores)
    ray     start + T (ROUND + (n SITE + s SMALL + entries ENTRY) / shards)

T is the number of rounds. n is the number of sites that the general solver solves. s is the number of small
sites, which compiled code solves, times the number of repeats. `entries` is rows x features x repeats, summed
over all sites. `start` is the time until the workers run. Shards are processes of a Ray cluster. Names in
capitals are constants of this file: `docs/scale.md` says how they were measured, and `python -m
benchmarks.scale` measures them again. Python code holds the interpreter's lock, so more processes make it
faster, but more threads do not.
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
"""Seconds of Python per round, for each site that is not small."""
SMALL = 6e-6
"""Seconds per round and repeat of a small site, in addition to the time for its entries."""
ENTRY = 4e-9
"""Seconds per row, feature, repeat and round."""
ROUND = 4e-3
"""Seconds of overhead per round on a cluster."""
START = 4.0
"""Seconds to start a cluster on this machine, and its workers."""
JOIN = 1.5
"""Seconds to start workers on a cluster that is already running."""

THREADED = 800_000
"""Threads wait for the lock if the mean of rows x features x repeats over the sites is below this number."""
PASSED = 200_000
"""The same threshold for the largest site if a simulation has no solver, and so reads rows once per round."""
SHARED = 2e-3
"""Threads share the work of compiled code if this work takes at least this many seconds per round."""


def threads_for(setup: Setup) -> int:
    """The number of threads for the local engine: one per core, or 1 if threads would wait for the lock."""
    problem = setup.problem
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
    """The number of small sites, which compiled code solves; 0 if the rows are not loaded yet."""
    if isinstance(problem, SourcedProblem):
        return 0
    return sum(is_small(problem.site(i)) for i in range(problem.n))


def choose(setup: Setup) -> str:
    """ "local" or "ray": the engine that should be faster for this run."""
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
    """ "local" or "ray", for independent jobs of this many seconds each; "local" runs one job at a time."""
    if jobs == 0 or importlib.util.find_spec("ray") is None:
        return "local"
    cpus, start = _cluster()
    return "ray" if start + seconds * math.ceil(jobs / cpus) < seconds * jobs else "local"


def faster(
    *, sites: int, small: int = 0, rounds: int, entries: int, cores: int, shards: int, start: float
) -> str:
    """ "local" or "ray", by the formulas at the top of this file; "local" if both take the same time.

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
    """A block in which `cpus_here` returns at most `cpus`, for one of many jobs on a machine."""
    before = _limit.set(cpus)
    try:
        yield
    finally:
        _limit.reset(before)


def _cluster() -> tuple[int, float]:
    """(CPUs of the joined cluster, or else of this machine; seconds to start workers). Imports no Ray."""
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        return max(1, int(ray.cluster_resources().get("CPU", 1))), JOIN
    return cpus_here(), JOIN if "RAY_ADDRESS" in os.environ else START
