"""Measure how the cost grows with sites, rows and features; every point runs in a new process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import taciturn as tt

from ..memory import forget_peak, peak, resident
from .workload import REPEATS, RHO, one_hot_rows, run

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """One size to measure."""

    sites: int
    rows: int
    features: int
    rounds: int


@dataclass(frozen=True)
class Cost:
    """The cost of a point: seconds per round, megabytes of data, and the largest additional memory."""

    point: Point
    seconds: float
    data_mb: float
    extra_mb: float


FULL = {
    "sites": [Point(n, 40_000, 105, 5) for n in (5, 20, 100, 1000, 10_000)],
    "rows": [Point(5, n, 105, 5) for n in (10_000, 30_000, 100_000, 300_000, 1_000_000)],
    "features": [Point(5, 20_000, d, 5) for d in (10, 30, 100, 300, 1000, 5000)],
}
QUICK = {
    "sites": [Point(n, 4_000, 105, 2) for n in (5, 50, 500)],
    "rows": [Point(5, n, 105, 2) for n in (1_000, 10_000)],
    "features": [Point(5, 2_000, d, 2) for d in (10, 100, 2000)],
}


def scaling(points: dict[str, list[Point]], tries: int, *, cpu: bool) -> dict[str, list[Cost]]:
    """The best of several tries at every point; with `cpu`, in CPU seconds on one thread."""
    return {
        axis: [
            min((_in_its_own_process(p, cpu) for _ in range(tries)), key=lambda cost: cost.seconds)
            for p in line
        ]
        for axis, line in points.items()
    }


def measure(point: Point, *, cpu: bool) -> Cost:
    """Build the problem, then time a run of a few rounds."""
    clock = time.process_time if cpu else time.perf_counter
    problem = _problem(point)
    graph = tt.Graph.ring(point.sites)
    run(problem, graph, rounds=1, repeats=REPEATS, threads=1)  # compiles, if a kernel solves the sites
    held = sum(_bytes(problem.site(i).parts[0].rows.Z) for i in range(problem.n))
    forget_peak()
    before = resident()
    start = clock()
    run(problem, graph, rounds=point.rounds, repeats=REPEATS, threads=1 if cpu else None)
    seconds = (clock() - start) / point.rounds
    return Cost(point, seconds, held / 2**20, (peak() - before) / 2**20)


def _in_its_own_process(point: Point, cpu: bool) -> Cost:
    command = [sys.executable, "-m", "benchmarks.speed", "--point", json.dumps(asdict(point))]
    command += ["--cpu"] * cpu
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return read_cost(done.stdout)


def read_cost(text: str) -> Cost:
    """The inverse of `json.dumps(asdict(cost))`."""
    facts = json.loads(text)
    return Cost(Point(**facts.pop("point")), **facts)


def _problem(point: Point) -> tt.Problem:
    X, y = one_hot_rows(point.rows) if point.features == 105 else _sparse_rows(point.rows, point.features)
    hands = [(X[i :: point.sites], y[i :: point.sites]) for i in range(point.sites)]
    return tt.Problem(hands, C=0.2 * (point.rows // point.sites), regularization=RHO)


def _sparse_rows(rows: int, features: int, entries: int = 14) -> tuple[sparse.csr_array, Array]:
    """Rows of norm at most 1 with 14 entries (5 where there are few features) in random columns."""
    rng = np.random.default_rng(0)
    entries = min(entries, features // 2)
    columns = rng.integers(0, features, size=rows * entries)
    values = np.abs(rng.normal(size=rows * entries)) / entries
    X = sparse.csr_array((values, columns, np.arange(rows + 1) * entries), shape=(rows, features))
    X.sum_duplicates()
    X = sparse.diags_array(1.0 / np.maximum(1.0, np.sqrt(X.power(2).sum(axis=1)))) @ X
    y = np.where(X @ rng.normal(size=features) + 0.1 * rng.normal(size=rows) > 0, 1.0, -1.0)
    return X, y


def _bytes(Z: object) -> int:
    if isinstance(Z, np.ndarray):
        return Z.nbytes
    return Z.data.nbytes + Z.indices.nbytes + Z.indptr.nbytes
