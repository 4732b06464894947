"""Measure the time and memory of runs with different numbers of sites and shards.

Other work on the machine disturbs wall-clock seconds; the page says how busy the machine was. It disturbs CPU
seconds less, so the constants of `taciturn.runtime.engine_selection` come from CPU seconds.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import taciturn as tt
from taciturn.core.progress import progress
from taciturn.objective import SourcedProblem
from taciturn.objective.sources import Size
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.runtime.engine_selection import cpus_here
from taciturn.runtime.ray.cluster import cluster
from taciturn.runtime.ray.driver import Driver
from taciturn.runtime.ray.worker import crew, fetch
from taciturn.runtime.setup import Setup, prepare
from taciturn.runtime.shards import cut

from ..memory import forget_peak, peak
from .small import Line, Race, by_sites, race

ROWS, FEATURES, DEGREE = 20, 10, 4
"""A small site: 20 rows of 10 features, four neighbours."""
LARGE = (100, 105)
"""The rows and features of a site that is only a little too large to be small."""
LINE = (5, 100, 1000, 10_000, 100_000)
"""The numbers of sites over which the same rows are distributed."""


@dataclass(frozen=True)
class Cost:
    """The cost of one run.

    seconds : wall-clock seconds.
    cpu : CPU seconds of all processes of the run.
    busiest : CPU seconds of the busiest process: the wall-clock time on an idle machine with enough cores.
    peak : the memory of the largest process, in bytes.
    """

    engine: str
    sites: int
    rounds: int
    shards: int
    seconds: float
    cpu: float
    busiest: float
    peak: float


@dataclass(frozen=True)
class Facts:
    """All numbers that the page needs."""

    site: float  # CPU seconds of Python per round and site that is not small
    small: float  # CPU seconds per round and repeat of a small site, without its entries
    entry: float  # CPU seconds per row, feature, repeat and round
    round: float  # seconds per round of a cluster, without the work
    start: float  # seconds to start a cluster here, and its workers
    join: float  # seconds to start workers on a running one
    worker: float  # bytes of a worker without sites
    site_bytes: float  # bytes of a worker per small site, including its rows
    block: float  # CPU seconds of the driver per block that shards exchange
    driver: dict[str, float]  # bytes and seconds of the driver per site
    runs: list[Cost]
    big: list[Cost]
    races: list[Race]
    lines: list[Line]
    busy: float  # the share of the cores that other programs used
    cores: int


def rows_of(i: int, rows: int = ROWS, features: int = FEATURES) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm 1 with noisy labels, the same in every process."""
    rng = np.random.default_rng(i)
    X = rng.standard_normal((rows, features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] + 0.1 * rng.standard_normal(rows) > 0, 1.0, -1.0)


def setup_of(
    sites: int,
    rounds: int,
    *,
    rows: int = ROWS,
    features: int = FEATURES,
    repeats: int = 1,
    graph: tt.Graph | None = None,
) -> Setup:
    """Penalty perturbation, by default on a random 4-regular graph; every site generates its rows."""
    sources = [partial(rows_of, i, rows, features) for i in range(sites)]
    method = tt.PenaltyPerturbation(tt.Geometric(0.5, 1.02), 0.5, tt.NormNoise(tt.Geometric(3.0, 1.01)))
    return prepare(
        SourcedProblem(sources, C=rows / 2, regularization=0.1),
        graph or tt.Graph.random_regular(sites, min(DEGREE, sites - 1), seed=0),
        method,
        rounds=rounds,
        repeats=repeats,
        seed=0,
        tol=1e-8,
        start="zeros",
        strict=True,
        history=False,
    )


def run_here(setup: Setup) -> Cost:
    """Run with the local engine; the rows are loaded before the clock starts."""
    forget_peak()
    problem = setup.problem.load()
    settings = {"rounds": setup.rounds, "repeats": setup.repeats, "progress": False}
    wall, cpu = time.perf_counter(), time.process_time()
    tt.simulate(problem, setup.graph, setup.method, **settings)
    seconds, spent = time.perf_counter() - wall, time.process_time() - cpu
    return Cost("local", setup.graph.n, setup.rounds, 1, seconds, spent, spent, peak())


def run_there(setup: Setup, shards: int) -> Cost:
    """The same rounds on the cluster that this process has joined; loading and starting are not counted."""
    parts = cut(setup.graph, shards)
    with crew(parts, setup.problem) as workers, progress(setup.rounds, "", show=False) as step:
        sizes = [size for part in fetch([w.survey.remote(False) for w in workers]) for size in part]
        setup = setup.on(setup.problem.with_sizes(sizes))
        driver = Driver(setup, parts, workers, None, [])
        before = [cpu for cpu, _ in fetch([w.usage.remote() for w in workers])]
        wall, cpu = time.perf_counter(), time.process_time()
        driver.run(step)
        seconds, spent = time.perf_counter() - wall, time.process_time() - cpu
        usage = fetch([w.usage.remote() for w in workers])
    cpus = [spent, *(cpu - old for (cpu, _), old in zip(usage, before, strict=True))]
    largest = max(peak for _, peak in usage)
    return Cost("ray", setup.graph.n, setup.rounds, shards, seconds, sum(cpus), max(cpus), largest)


def driver_costs(sites: int) -> dict[str, float]:
    """The memory and time that the driver needs for each site, without any worker."""
    few, many = _driver_costs(sites, 10), _driver_costs(sites, 50)
    per_round = (many["bytes"] - few["bytes"]) / 40
    return few | {"bytes": few["bytes"] - 10 * per_round, "bytes_round": per_round}


def _driver_costs(sites: int, rounds: int) -> dict[str, float]:
    clock = time.process_time()
    setup, ledger = _driver_state(sites, rounds)
    ready = time.process_time()
    for t in range(1, rounds + 1):
        ledger.charge_round(setup.prepared.charges(t))
    charged = time.process_time()
    Certificate.from_ledger(ledger, delta=1e-5)
    certified = time.process_time()
    return {
        "prepare": (ready - clock) / sites,
        "charge": (charged - ready) / sites / rounds,
        "certificate": (certified - charged) / sites,
        "bytes": _driver_bytes(sites, rounds) / sites,
    }


def _driver_state(sites: int, rounds: int) -> tuple[Setup, MemoryLedger]:
    setup = setup_of(sites, rounds)
    setup = setup.on(setup.problem.with_sizes([Size(ROWS, FEATURES, 1.0)] * sites))
    return setup, MemoryLedger(setup.run_facts(), setup.site_facts())


def _driver_bytes(sites: int, rounds: int) -> int:
    """Bytes that the driver's objects hold after all rounds, counted by allocation.

    The resident size of the process is not useful: it includes memory that earlier measurements freed.
    """
    tracemalloc.start()
    try:
        setup, ledger = _driver_state(sites, rounds)
        for t in range(1, rounds + 1):
            ledger.charge_round(setup.prepared.charges(t))
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def block_cost(rounds: int = 40) -> float:
    """CPU seconds of the driver for one more block per round, from 8 shards on a ring and on a full graph."""
    found = []
    for graph in (tt.Graph.ring(32), tt.Graph.complete(32)):
        blocks = sum(len(part.outbound) for part in cut(graph, 8))
        clock = time.process_time()
        run_there(setup_of(32, rounds, graph=graph), 8)
        found.append((blocks, (time.process_time() - clock) / rounds))
    (few, cheap), (many, dear) = found
    return (dear - cheap) / (many - few)


def starting() -> tuple[float, float]:
    """(START, JOIN): seconds to start a cluster with two workers, and two workers on a running one."""
    setup = setup_of(4, 1)
    parts = cut(setup.graph, 2)
    clock = time.perf_counter()
    with cluster("local", 2):
        with crew(parts, setup.problem):
            start = time.perf_counter() - clock
        clock = time.perf_counter()
        with crew(parts, setup.problem):
            join = time.perf_counter() - clock
    return start, join


def measure(*, quick: bool) -> Facts:
    """Measure everything; `quick` uses fewer sites."""
    sizes = (10, 100, 1000) if quick else (10, 100, 1000, 10_000)
    rounds, largest = (10, 3000) if quick else (50, 100_000)
    idle, wall = _idle(), time.perf_counter()
    own = time.process_time()
    start, join = starting()
    runs: list[Cost] = []
    with cluster("local", 4):
        for sites in sizes:
            runs += [run_here(setup_of(sites, rounds)), run_there(setup_of(sites, rounds), 2)]
            _tell(runs[-2:])
        for shards in (1,) if quick else (1, 4):
            runs.append(run_there(setup_of(sizes[-1], rounds), shards))
            _tell(runs[-1:])
        empty = run_there(setup_of(4, 200), 2)
        wide = run_here(setup_of(4, 10, rows=20_000, features=50, repeats=5))
        general = run_here(setup_of(100, 10, rows=LARGE[0], features=LARGE[1]))
        block = block_cost()
        big = [run_there(setup_of(largest, 50), 2)]
        _tell(big)
        big.append(run_here(setup_of(largest, 50)))
        _tell(big[1:])
    several = [cost for cost in runs if cost.engine == "local" and cost.sites >= 1000]
    entry = wide.cpu / wide.rounds / (4 * 20_000 * 50 * 5)
    each = float(np.median([cost.cpu / cost.sites / cost.rounds for cost in several]))
    few, many = runs[1], big[0]
    worked = sum(cost.cpu for cost in (*runs, *big, empty, wide, general)) + time.process_time() - own
    cores, elapsed = cpus_here(), time.perf_counter() - wall
    busy = max(0.0, 1 - (_idle() - idle) / cores / elapsed - worked / cores / elapsed)
    return Facts(
        site=general.cpu / general.rounds / general.sites - LARGE[0] * LARGE[1] * entry,
        small=each - ROWS * FEATURES * entry,
        entry=entry,
        round=empty.seconds / empty.rounds,
        start=start,
        join=join,
        worker=few.peak,
        site_bytes=(many.peak - few.peak) / (many.sites / many.shards),
        block=block,
        driver=driver_costs(20_000 if quick else 100_000),
        runs=runs,
        big=big,
        races=[race(10_000, ROWS, FEATURES, tries=2), race(1000, 40, 105, tries=2)],
        lines=by_sites(LINE, 11),
        busy=busy,
        cores=cores,
    )


def _tell(costs: list[Cost]) -> None:
    for cost in costs:
        print(
            f"{cost.engine:5} {cost.sites:6} sites {cost.shards} shards {cost.rounds:3} rounds "
            f"{cost.seconds:8.2f} s wall {cost.cpu:8.2f} s CPU {cost.peak / 2**20:7.1f} MB",
            flush=True,
        )


def _idle() -> float:
    """Seconds that all cores together have been idle since the machine started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")
