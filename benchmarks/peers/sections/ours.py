"""taciturn as real sites: five processes with mutual TLS, planned for (1, 1e-5), without tuning."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import taciturn as tt
from taciturn.sites.trial.rehearsal import make_network

from ..rows import DEAL, SITES, adult
from ..running.sandbox import Process, Script

DELTA = 1e-5
RING = [(i, (i + 1) % SITES) for i in range(SITES)]
COMPLETE = [(i, j) for i in range(SITES) for j in range(i)]


def script(folder: Path, method: str, *, seed: int | None = None, rounds: int | None = None) -> Script:
    """Write the files for five sites to folder/net; return the commands of their operators."""
    hands = adult().hands(SITES, DEAL)
    samples = [len(y) for _, y in hands]
    job, site = masked(samples, rounds) if method == "masked" else penalty(samples, rounds)
    if seed is not None:
        job["seed"] = seed  # a rehearsal, whose noise can be repeated
    links = RING if method == "masked" else COMPLETE
    paths = make_network(folder / "net", hands, links, job=job, site={"patience": 120.0} | site)
    processes = [
        Process(f"site-{i}", (sys.executable, "-m", "taciturn", "site", "run", str(path)))
        for i, path in enumerate(paths)
    ]
    watch = (sys.executable, "-m", "benchmarks.peers.running.watcher", str(paths[0]))
    watcher = Process("watcher", watch, apart=True)
    names = tuple(process.name for process in processes)
    return Script(
        (watcher, *processes),
        timeout=600.0,
        model="net/site-0/state/model.json",
        waits_for=names,
        fails_with="site-0",
        env={"PYTHONPATH": path_of_this()},
    )


def path_of_this() -> str:
    """The PYTHONPATH for taciturn, the benchmarks and the common part of the adapters."""
    here = Path(__file__).resolve()
    source = Path(tt.__file__).resolve().parents[1]
    return f"{source}:{here.parents[3]}:{here.parents[1] / 'adapters'}"


def masked(samples: list[int], rounds: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Masked descent: no site sees what a single other site adds to a sum. One other site may collude."""
    plan = tt.plan(
        epsilon=1.0,
        delta=DELTA,
        samples=samples,
        graph="ring",
        dimension=adult().dimension,
        colluding=1,
        rounds=rounds,
    )
    job = {
        "name": "adult",
        "method": "masked",
        "rounds": plan.rounds,
        "loss": "logistic",
        "C": plan.C,
        "regularization": plan.regularization,
        "delta": DELTA,
        "epsilon": 1.0,
        "colluding": 1,
    }
    return job, {"budget": {"epsilon": 1.0, "colluding": 1}}


def penalty(samples: list[int], rounds: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """M-ADMM with penalty perturbation, which trusts no other site."""
    plan = tt.plan(
        epsilon=1.0,
        delta=DELTA,
        samples=min(samples),  # the same noise for all sites, some of which have one more row
        graph=tt.Graph.complete(SITES),
        dimension=adult().dimension,
        rounds=rounds,
        noise="gaussian",
        effort="quick",
    ).to_dict()
    job = {name: plan[name] for name in ("rounds", "C", "regularization", "dual_step", "delta")}
    job |= {"name": "adult", "loss": "logistic", "clip": 1024.0, "grid": 2.0**-34, "tol": 1e-7}
    site = {name: plan[name] for name in ("penalty", "noise", "output_noise")}
    return job, site | {"budget": {"epsilon": 1.0}}


def read_sites(folder: Path) -> tuple[np.ndarray, bool]:
    """The model of the first site, and whether all five sites have the same model."""
    models = []
    for i in range(SITES):
        file = folder / "net" / f"site-{i}" / "state" / "model.json"
        models.append(json.loads(file.read_text(encoding="utf-8"))["coef"])
    return np.asarray(models[0]).reshape(-1), all(model == models[0] for model in models)
