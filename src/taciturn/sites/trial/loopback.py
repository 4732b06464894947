"""A network of processes on this machine, to try it: generated rows, throw-away keys, real noise."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import SiteError
from ...core.types import Array
from ..files.site import load_site
from ..watch.status import Status, completed_rounds, read_status
from .rehearsal import make_network

ROWS, FEATURES, HELD_OUT = 500, 10, 2000


def make_local(
    folder: Path, sites: int, *, job: Mapping[str, Any], site: Mapping[str, Any]
) -> tuple[list[Path], tuple[Array, Array]]:
    """Files for a ring of `sites` sites, and rows set aside to try the model on.

    `job` and `site` hold what a plan chose: rounds, weights, penalty, noise and budget.
    """
    rows = [generated_rows(ROWS) for _ in range(sites)]
    common = {"name": "local", "loss": "logistic", "clip": 64.0, "grid": 2.0**-34, "tol": 1e-10}
    links = [(i, (i + 1) % sites) for i in range(sites)] if sites > 2 else [(0, 1)]
    paths = make_network(folder, rows, links, job=common | dict(job), site={"patience": 120.0} | dict(site))
    return paths, generated_rows(HELD_OUT)


def generated_rows(rows: int, seed: int | None = None) -> tuple[Array, Array]:
    """Rows of norm at most 1 about nobody, with labels that a hyperplane explains but for one in ten."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, FEATURES))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(X @ np.linspace(1.0, -1.0, FEATURES) > 0, 1.0, -1.0)
    return X, np.where(rng.random(rows) < 0.1, -y, y)


def accuracy(coef: Array, rows: tuple[Array, Array]) -> float:
    """The share of rows that a model classifies correctly."""
    return float(np.mean(np.sign(rows[0] @ coef) == rows[1]))


@contextmanager
def run_processes(paths: Sequence[Path]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """One process per site, its log in log.txt beside site.toml; whoever is left at the end is ended."""
    processes = []
    try:
        for path in paths:
            with (path.parent / "log.txt").open("ab") as log:
                command = [sys.executable, "-m", "taciturn", "site", "run", str(path)]
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=_environment()))
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        for process in processes:
            process.wait()


def watch(
    paths: Sequence[Path], processes: Sequence[subprocess.Popen[bytes]], shown: Callable[[list[int]], None]
) -> list[Status]:
    """Tell `shown` the completed rounds of all sites as they change, until every process has ended well."""
    sites, last = [load_site(path) for path in paths], [-1] * len(paths)
    while True:
        ended = [process.poll() for process in processes]
        failed = [site.name for site, code in zip(sites, ended, strict=True) if code not in (None, 0)]
        if failed:
            log = paths[0].parent.parent / failed[0] / "log.txt"
            raise SiteError(f"{failed[0]} failed: {log.read_text().strip().splitlines()[-1]}")
        rounds = [completed_rounds(site) for site in sites]
        if rounds != last:
            shown(rounds)
            last = rounds
        if all(code == 0 for code in ended):
            return [read_status(site) for site in sites]
        time.sleep(0.2)


def _environment() -> dict[str, str]:
    """One BLAS thread per process: there are as many processes as there is work."""
    return os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
