"""The files that sites leave behind, and the checks on them after every run."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import taciturn as tt
from taciturn.objective.problem import Problem
from taciturn.runtime.local import run_local
from taciturn.runtime.setup import prepare
from taciturn.sites.files.rows import load_rows
from taciturn.sites.files.site import Site, load_site
from taciturn.sites.protocol.core import read_total


def in_process(sites: list[Site]) -> np.ndarray:
    """The same job by the in-process engine: every released vector, (rounds, sites, d)."""
    job = sites[0].job
    problem = Problem(
        [load_rows(site) for site in sites], loss=job.loss, C=job.C, regularization=job.regularization
    )
    first = sites[0].file
    scale = "rate" if first.noise.kind == "norm" else "std"
    noise = type(first.noise)([getattr(site.file.noise, scale) for site in sites])
    method = tt.PenaltyPerturbation(
        penalty=[site.file.penalty for site in sites],
        dual_step=job.dual_step,
        noise=noise,
        output_noise=first.output_noise,
        grid=job.grid,
        clip=job.clip,
        whiten=job.whiten,
    )
    setup = prepare(
        problem,
        job.graph,
        method,
        rounds=job.rounds,
        repeats=1,
        seed=job.seed,
        tol=job.tol,
        start="zeros",
        strict=False,
        history=True,
    )
    object.__setattr__(setup, "prepared", replace(setup.prepared, refresh=1))  # as sites do
    history = run_local(setup, show=False).history
    assert history is not None
    return history[:, 0]


def sent_vectors(site: Site) -> np.ndarray:
    """Every vector that a site released, from the rounds that it completed, (rounds, d)."""
    totals = [read_total(data)[1] for data in totals_of(site)]
    return np.stack([np.frombuffer(own, dtype="<f8") for own in totals])


def totals_of(site: Site) -> list[bytes]:
    """The records of the rounds that a site has completed, in order."""
    rows = _ask(site, "SELECT key, value FROM records WHERE key LIKE 'total/%'")
    return [value for _, value in sorted(rows, key=lambda row: int(row[0][6:]))]


def rounds_of(site: Site) -> int:
    """How many rounds a running site has been charged for."""
    return len(charged_rounds(site))


def charged_rounds(site: Site) -> list[int]:
    """The rounds in a site's ledger, in the order they were charged."""
    bodies = _ask(site, "SELECT body FROM ledger WHERE t IS NOT NULL ORDER BY seq")
    return [json.loads(body)["round"] for (body,) in bodies]


def check_end(paths: list[Path], expected: np.ndarray | None = None) -> None:
    """Each round charged once and released once, with the bytes of an undisturbed run; one model for all."""
    sites = [load_site(path) for path in paths]
    history = in_process(sites) if expected is None else expected
    for i, site in enumerate(sites):
        assert charged_rounds(site) == list(range(1, site.job.rounds + 1))
        assert sent_vectors(site).tobytes() == np.ascontiguousarray(history[:, i]).tobytes()
    models = {(site.state / "model.json").read_bytes() for site in sites}
    assert len(models) == 1


def _ask(site: Site, query: str) -> list[Any]:
    if not site.database.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
            return db.execute(query).fetchall()
    except sqlite3.OperationalError:  # not begun, or just being made
        return []
