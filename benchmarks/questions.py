"""`python -m benchmarks.questions`: describe 50 columns at five sites with 10^5 rows each, on this machine.

It prints the seconds from the start of the first site to the end of the last one, including the time in which
the sites find each other; the CPU seconds of all sites together, which are more reliable on a busy machine;
and the largest memory of a site.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from taciturn.jobfile.toml_files import write_toml
from taciturn.sites.files.keys import Authority, write_new
from taciturn.sites.trial.rehearsal import LOOPBACK, free_ports, issue


def make_sites(folder: Path, sites: int, rows: int, columns: int, form: str) -> list[Path]:
    """Write tables of numbers, and the files of a job that describes them."""
    names, ports = [f"site-{k}" for k in range(sites)], free_ports(sites)
    fields = [{"name": f"x{k}", "low": 0, "high": 100} for k in range(columns)]
    entries = [
        {"name": name, "endpoint": f"tls/{LOOPBACK}:{port}", "samples": rows}
        for name, port in zip(names, ports, strict=True)
    ]
    job = {
        "format": 2,
        "name": "large",
        "kind": "describe",
        "epsilon": 1.0,
        "delta": 1e-6,
        "colluding": min(1, sites - 1),
    }
    write_new(
        folder / "job.toml", write_toml(job | {"schema": {"fields": fields}, "sites": entries}).encode()
    )
    authority = Authority.throw_away()
    authority.save(folder)
    paths = []
    for k, name in enumerate(names):
        own = folder / name
        own.mkdir()
        issue(authority, own, name, [LOOPBACK])
        values = np.random.default_rng(k).uniform(0, 100, (columns, rows)).round(2)
        table = pa.table({f"x{k}": one for k, one in enumerate(values)})
        write = parquet.write_table if form == "parquet" else csv.write_csv
        write(table, str(own / f"rows.{form}"))
        keys = {"private": f"{name}.key", "certificate": f"{name}.pem", "authority": "../authority.pem"}
        facts = {"site": name, "job": "../job.toml", "data": f"rows.{form}", "state": "state", "keys": keys}
        facts |= {
            "budget": {"epsilon": 10.0, "delta": 1e-6},
            "approve": {"kinds": ["describe"]},
            "patience": 600.0,
        }
        write_new(own / "site.toml", write_toml(facts).encode())
        paths.append(own / "site.toml")
    return paths


def run_sites(paths: list[Path], share: Path) -> dict[str, float]:
    """Run all sites at once; return the seconds, the CPU seconds of all sites, and the largest megabytes."""
    start = time.perf_counter()
    started = []
    for path in paths:
        env = os.environ | {"XDG_DATA_HOME": str(share / path.parent.name), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "taciturn", "site", "run", str(path)]
        with (path.parent / "log.txt").open("wb") as log:
            started.append(subprocess.Popen(command, env=env, stdout=log, stderr=log))
    used = [os.wait4(process.pid, 0) for process in started]
    if any(status for _, status, _ in used):
        raise SystemExit("\n".join((path.parent / "log.txt").read_text() for path in paths))
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": sum(usage.ru_utime + usage.ru_stime for _, _, usage in used),
        "megabytes": max(usage.ru_maxrss for _, _, usage in used) / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=5)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--form", choices=("parquet", "csv"), default="parquet")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = make_sites(Path(folder), given.sites, given.rows, given.columns, given.form)
        print(json.dumps(vars(given) | run_sites(paths, Path(folder) / "share")))


if __name__ == "__main__":
    main()
