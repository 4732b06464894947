"""What the network adds to a round: real site processes on loopback against the in-process engine.

    python -m benchmarks.sites [--sites 5] [--rounds 200]

The rows are few, so that little is solved and mostly the overhead is seen: charge, commit to disk, signature,
mutual TLS, verification. The interval is that between two releases of a site.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.admm.node import NodeState
from taciturn.objective.solver.general import SolverState
from taciturn.sites.files.site import Site, load_site
from taciturn.sites.rounds.driver import open_store
from taciturn.sites.rounds.prepare import Ready, make_ready
from taciturn.sites.trial.local import run_processes, watch
from taciturn.sites.trial.rehearsal import make_network
from taciturn.sites.wire.frame import to_message

ROWS, D = 100, 105
JOB: dict[str, Any] = {
    "name": "benchmark",
    "loss": "logistic",
    "C": 50.0,
    "regularization": 10**-2.5,
    "dual_step": 0.5,
    "delta": 1e-5,
    "clip": 64.0,
    "grid": 2.0**-34,
    "tol": 1e-10,
}
SITE: dict[str, Any] = {
    "penalty": 0.5,
    "noise": {"kind": "gaussian", "std": 3.4},
    "output_noise": {"kind": "gaussian", "std": 1e-5},
    "budget": {"epsilon": 1e6},
    "patience": 120.0,
}


def rows(rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows of norm 1 with random labels."""
    X = rng.standard_normal((ROWS, D))
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)


def intervals(site: Site) -> list[float]:
    """Milliseconds between two releases of a site, from the times in its outbox."""
    with closing(sqlite3.connect(site.database)) as db:
        at = [
            entry
            for (entry,) in db.execute(
                "SELECT at FROM outbox WHERE t BETWEEN 1 AND ? ORDER BY t", (site.job.rounds,)
            )
        ]
    return [1e3 * (b - a) for a, b in itertools.pairwise(at)]


def solving(ready: Ready, rounds: int) -> float:
    """Median milliseconds of one primal update alone."""
    state, taken = ready.start(), []
    for t in range(1, rounds + 1):
        begun = time.perf_counter()
        f = ready.node.primal(state, t, SolverState())
        taken.append(1e3 * (time.perf_counter() - begun))
        state = NodeState(t, f, state.lam, 2 * f)
    return statistics.median(taken)


def committing(ready: Ready, rounds: int) -> float:
    """Median milliseconds of one charge and commit, fsync included, in a file of its own."""
    taken = []
    with open_store(ready) as store:
        for t in range(1, rounds + 1):
            frame = ready.seal(t, to_message(np.zeros(D)))
            begun = time.perf_counter()
            store.release(ready.start(), ready.node.charge_of(t), frame, {})
            taken.append(1e3 * (time.perf_counter() - begun))
    return statistics.median(taken)


def main() -> None:
    """Run it and print a table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--sites", type=int, default=5)
    options.add_argument("--rounds", type=int, default=200)
    chosen = options.parse_args()
    n, rng = chosen.sites, np.random.default_rng(0)
    links = [(i, (i + 1) % n) for i in range(n)] if n > 2 else [(0, 1)]
    with tempfile.TemporaryDirectory() as folder:
        job = JOB | {"rounds": chosen.rounds}
        paths = make_network(Path(folder) / "net", [rows(rng) for _ in range(n)], links, job=job, site=SITE)
        with run_processes(paths) as processes:
            watch(paths, processes, lambda completed: None)
        gaps = [gap for path in paths for gap in intervals(load_site(path))]
        alone = make_network(
            Path(folder) / "one", [rows(rng) for _ in range(2)], [(0, 1)], job=job, site=SITE
        )
        ready = make_ready(load_site(alone[0]))
        solve, commit = solving(ready, chosen.rounds), committing(ready, chosen.rounds)
    print(f"{n} sites in a ring on {platform.machine()}, {chosen.rounds} rounds, d = {D}, {ROWS} rows a site")
    print("| per round and site | ms |\n|---|---|")
    print(f"| interval between releases, median | {statistics.median(gaps):.2f} |")
    print(f"| interval, best tenth | {np.percentile(gaps, 10):.2f} |")
    print(f"| of that: solving | {solve:.2f} |")
    print(f"| of that: charge and commit, on disk | {commit:.2f} |")


if __name__ == "__main__":
    main()
