"""Run a whole network on this machine, with throw-away keys and generated rows, to try things out."""

from __future__ import annotations

import os
import random
import socket
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
from ...jobfile.job_format import KINDS
from ...jobfile.toml_files import write_toml
from ..files.keys import Authority, new_key, pem, signing_request, write_new
from ..files.site import load_site
from ..watch.status import Status, completed_rounds, read_status

LOOPBACK = "127.0.0.1"
PORTS = range(20_000, 32_000)
_OWNER = {"approve": {"kinds": list(KINDS), "by_site": True}}  # approve every job: the rows are made up


def free_ports(count: int) -> list[int]:
    """Free ports of this machine, below those that the system assigns to clients."""
    ports: list[int] = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as attempt:
            if attempt.connect_ex((LOOPBACK, port)) != 0:
                ports.append(port)
        if len(ports) == count:
            return ports
    raise SiteError(f"fewer than {count} ports are free between {PORTS.start} and {PORTS.stop}.")


def issue(authority: Authority, folder: Path, name: str, hosts: Sequence[str]) -> None:
    """Write a key and a certificate for `name` to `folder`, as NAME.key and NAME.pem."""
    key = new_key(folder / f"{name}.key")
    write_new(folder / f"{name}.pem", pem(authority.sign(signing_request(key, name, hosts))))


def make_network(
    folder: Path,
    shards: Sequence[tuple[Any, Any]],
    links: Sequence[tuple[int, int]],
    *,
    job: Mapping[str, Any],
    site: Mapping[str, Any],
    hosts: Sequence[str] | None = None,
) -> list[Path]:
    """Write job.toml, a throw-away authority, and for each (X, y) of `shards` the folder of a site.

    A site's folder has site.toml, keys and rows. `job` has the other entries of job.toml, and `site` has the
    other entries of every site.toml. A job with a seed is allowed as a rehearsal. Returns the paths of the
    site.toml files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"site-{i}" for i in range(len(shards))]
    hosts = hosts or [LOOPBACK] * len(shards)
    entries = [
        {"name": name, "endpoint": f"tls/{host}:{port}", "samples": len(y)}
        for name, host, port, (_, y) in zip(names, hosts, free_ports(len(shards)), shards, strict=True)
    ]
    facts = {"format": 2, "kind": "train", "dimension": int(np.shape(shards[0][0])[1])} | dict(job)
    facts |= {"sites": entries, "links": [[names[i], names[j]] for i, j in links]}
    write_new(folder / "job.toml", write_toml(facts).encode())
    authority = Authority.throw_away()
    authority.save(folder)
    own = ({"rehearsal": True} if facts.get("seed") is not None else _OWNER) | dict(site)
    if facts.get("seed") is None:
        own["budget"] = {"ledger": "account/budget.sqlite"} | dict(own["budget"])
    for name, host, (X, y) in zip(names, hosts, shards, strict=True):
        (folder / name).mkdir()
        issue(authority, folder / name, name, [host])
        np.savez(folder / name / "rows.npz", X=np.asarray(X, float), y=np.asarray(y, float))
        keys = {"private": f"{name}.key", "certificate": f"{name}.pem", "authority": "../authority.pem"}
        files = {"site": name, "job": "../job.toml", "data": "rows.npz", "state": "state", "keys": keys}
        write_new(folder / name / "site.toml", write_toml(files | own).encode())
    return [folder / name / "site.toml" for name in names]


ROWS, FEATURES, HELD_OUT = 500, 10, 2000


def make_local(
    folder: Path, sites: int, *, job: Mapping[str, Any], site: Mapping[str, Any]
) -> tuple[list[Path], tuple[Array, Array]]:
    """Write the files of a ring of `sites` sites; return the paths of site.toml, and rows to test the model.

    `job` and `site` have the settings that a plan chose: rounds, weights, penalty, noise and budget.
    """
    rows = [generated_rows(ROWS) for _ in range(sites)]
    common = {"name": "local", "loss": "logistic", "clip": 64.0, "grid": 2.0**-34, "tol": 1e-10}
    links = [(i, (i + 1) % sites) for i in range(sites)] if sites > 2 else [(0, 1)]
    paths = make_network(folder, rows, links, job=common | dict(job), site={"patience": 120.0} | dict(site))
    return paths, generated_rows(HELD_OUT)


def generated_rows(rows: int, seed: int | None = None) -> tuple[Array, Array]:
    """Generated rows of norm at most 1. A hyperplane sets the labels, of which about a tenth is flipped."""
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
    """Run one process per site, with log.txt beside its site.toml, and stop all of them after the block.

    Each process has one BLAS thread, because the processes already keep all cores busy.
    """
    processes, alone = [], os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        for path in paths:
            with (path.parent / "log.txt").open("ab") as log:
                command = [sys.executable, "-m", "taciturn", "site", "run", str(path)]
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=alone))
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
    """Call `shown` with each site's number of completed rounds at every change, until all have succeeded."""
    sites, last = [load_site(path) for path in paths], [-1] * len(paths)
    while True:
        ended = [process.poll() for process in processes]
        failed = [site.name for site, code in zip(sites, ended, strict=True) if code not in (None, 0)]
        if failed:
            log = paths[0].parent.parent / failed[0] / "log.txt"
            lines = log.read_text().strip().splitlines() or ["killed before it logged anything"]
            raise SiteError(f"{failed[0]} failed: {lines[-1]}")
        rounds = [completed_rounds(site) for site in sites]
        if rounds != last:
            shown(rounds)
            last = rounds
        if all(code == 0 for code in ended):
            return [read_status(site) for site in sites]
        time.sleep(0.2)
