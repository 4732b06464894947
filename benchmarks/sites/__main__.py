"""Measure what the network adds to a round, with real site processes on loopback.

    python -m benchmarks.sites [--sites 5] [--rounds 200] [--method penalty] [--threads] [--page FILE.md]

There are few rows, so that solving takes little time and the overhead is visible: charge, commit to disk,
signature, mutual TLS, verification. A round lasts from one release of a site to the next.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.sites.trial.rehearsal import make_network

ROWS, D = 100, 105
BEGIN, END = "<!-- python -m benchmarks.sites --page -->\n", "\n<!-- end of it -->"
COMMON: dict[str, Any] = {"name": "benchmark", "loss": "logistic", "C": 50.0, "regularization": 10**-2.5}
JOBS: dict[str, dict[str, Any]] = {
    "penalty": {"dual_step": 0.5, "delta": 1e-5, "clip": 64.0, "grid": 2.0**-34, "tol": 1e-10},
    "masked": {"method": "masked", "delta": 1e-5, "epsilon": 1.0, "colluding": 1},
}
SITES: dict[str, dict[str, Any]] = {
    "penalty": {
        "penalty": 0.5,
        "noise": {"kind": "gaussian", "std": 30.0},
        "output_noise": {"kind": "gaussian", "std": 1e-5},
        "budget": {"epsilon": 10.0},
    },
    "masked": {"budget": {"epsilon": 1.0, "colluding": 1}},
}


def rows(rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows of norm 1 with random labels."""
    X = rng.standard_normal((ROWS, D))
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)


def run(folder: Path, method: str, sites: int, rounds: int) -> list[dict[str, Any]]:
    """Run a ring of sites from start to end; return the times of each site."""
    rng = np.random.default_rng(0)
    links = [(i, (i + 1) % sites) for i in range(sites)] if sites > 2 else [(0, 1)]
    paths = make_network(
        folder,
        [rows(rng) for _ in range(sites)],
        links,
        job=COMMON | JOBS[method] | {"rounds": rounds},
        site={"patience": 600.0} | SITES[method],
    )
    processes, environment = [], os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for path in paths:
        with (path.parent / "log.txt").open("wb") as log:
            command = [sys.executable, "-m", "benchmarks.sites.timed", str(path)]
            processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
    for path, process in zip(paths, processes, strict=True):
        if process.wait() != 0:
            raise SystemExit(f"{path.parent.name} failed:\n{(path.parent / 'log.txt').read_text()}")
    return [json.loads((path.parent / "times.json").read_text()) for path in paths]


def per_round(times: list[dict[str, Any]], kind: str, part: str, rounds: int) -> float:
    """The milliseconds per round of one part, at the median site."""
    each = [float(entry[kind].get(part, 0.0)) for entry in times]
    return 1e3 * statistics.median(each) / (rounds - 1)


ZENOH = "rx", "tx", "net", "acc", "app"  # the names of Zenoh's threads
PARTS = {
    "solve": "solve, noise and masks",
    "sign": "signature",
    "commit": "charge and commit, in total",
    "sync": "of that: SQLite writes and syncs",
    "send": "pass frames to Zenoh",
    "check": "check incoming frames: name, signature, values",
    "wait": "wait for the neighbours",
}


def table(times: list[dict[str, Any]], rounds: int) -> list[str]:
    """The lines of a table: wall-clock and CPU milliseconds per round and site."""
    gaps = [1e3 * (b - a) for entry in times for a, b in itertools.pairwise(entry["released"])]
    wall, cpu = (per_round(times, kind, "whole", rounds) for kind in ("wall", "cpu"))
    lines = [
        "| per round and site | wall, ms | CPU, ms |",
        "|---|---|---|",
        f"| all, median round | {statistics.median(gaps):.2f} | |",
        f"| all, best tenth of the rounds | {np.percentile(gaps, 10):.2f} | |",
        f"| all, worst hundredth of the rounds | {np.percentile(gaps, 99):.2f} | |",
        f"| all, mean | {wall:.2f} | {cpu:.2f} |",
    ]
    for part, words in PARTS.items():
        of = [per_round(times, kind, part, rounds) for kind in ("wall", "cpu")]
        lines.append(f"| {words} | {of[0]:.2f} | {of[1]:.2f} |")
    own, check = (per_round(times, "cpu", part, rounds) for part in ("own thread", "check"))
    inside = sum(per_round(times, "cpu", part, rounds) for part in ("solve", "sign", "commit", "send"))
    zenoh = sum(per_round(times, "cpu", f"thread {name}", rounds) for name in ZENOH)
    lines.append(f"| everything else in the site's own thread | | {own - inside - check:.2f} |")
    lines.append(f"| Zenoh's threads: TLS, sockets, routing | | {zenoh:.2f} |")
    lines.append(f"| other threads: the meter, Zenoh's log, answers | | {cpu - own - zenoh:.2f} |")
    return lines


def ending(times: list[dict[str, Any]]) -> str:
    """A sentence with the seconds of each part of a run."""
    last = max(entry["released"][-1] for entry in times)
    first = min(entry["released"][0] for entry in times)
    written = max(entry["marks"]["results"] for entry in times)
    left = max(entry["marks"]["left"] for entry in times)
    begun = min(entry["marks"]["begun"] for entry in times)
    return (
        f"The opening took {first - begun:.2f} s and the rounds {last - first:.2f} s. The last results "
        f"followed {written - last:.2f} s after the last release, and the last site left "
        f"{left - written:.2f} s later"
    )


def write_page(text: str, page: Path) -> None:
    """Replace the tables of the page."""
    before, rest = page.read_text().split(BEGIN)
    page.write_text(before + BEGIN + text + END + rest.split(END)[1])


def main() -> None:
    """Run the benchmark and print its tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--sites", type=int, default=5)
    options.add_argument("--rounds", type=int, default=200)
    options.add_argument("--method", choices=[*JOBS], action="append")
    options.add_argument("--threads", action="store_true", help="also print the CPU time of each thread")
    options.add_argument("--page", type=Path, help="write the tables to this page, between its marks")
    chosen, parts = options.parse_args(), []
    for method in chosen.method or JOBS:
        with tempfile.TemporaryDirectory() as folder:
            times = run(Path(folder) / "net", method, chosen.sites, chosen.rounds)
        where = f"{os.cpu_count()} cores of {platform.machine()}, load {os.getloadavg()[0]:.1f}"
        what = f"`{method}`, {chosen.sites} sites in a ring, {chosen.rounds} rounds"
        parts.append(f"\n{what}, d = {D}, {ROWS} rows a site, {where}:\n")
        parts += ["\n".join(table(times, chosen.rounds)), f"\n{ending(times)}.\n"]
        print("\n".join(parts[-3:]), flush=True)
        if chosen.threads:
            for part in sorted({part for entry in times for part in entry["cpu"] if "thread" in part}):
                print(f"{part}: {per_round(times, 'cpu', part, chosen.rounds):.2f} ms")
    if chosen.page is not None:
        write_page("\n".join(parts), chosen.page)


if __name__ == "__main__":
    main()
