"""What sites leave behind, and what must hold of it at the end of every run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

import taciturn as tt
from taciturn.engines.local import run_local
from taciturn.engines.setup import prepare
from taciturn.objective.problem import Problem
from taciturn.sites.files.rows import load_rows
from taciturn.sites.files.site import Site, load_site
from taciturn.sites.wire.frame import decode, to_vector


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
    history = run_local(replace(setup, refresh=1), show=False).history
    assert history is not None
    return history[:, 0]


def released_vectors(site: Site) -> np.ndarray:
    """Every vector in a site's outbox, (rounds, d)."""
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
        rows = db.execute(
            "SELECT t, frame FROM outbox WHERE attempt = 0 AND t BETWEEN 1 AND ? ORDER BY t",
            (site.job.rounds,),
        ).fetchall()
    assert [t for t, _ in rows] == list(range(1, site.job.rounds + 1))
    return np.stack([to_vector(decode(frame, largest=10**6).message) for _, frame in rows])


def kept_vector(site: Site) -> np.ndarray:
    """The vector that a site goes on with, from its stored state."""
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
        (blob,) = db.execute("SELECT f FROM state").fetchone()
    return np.frombuffer(blob)


def rounds_of(site: Site) -> int:
    """How many rounds a running site has released."""
    if not site.database.exists():
        return 0
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'outbox'").fetchone() is None:
            return 0
        return int(
            db.execute(
                "SELECT count(*) FROM outbox WHERE attempt = 0 AND t BETWEEN 1 AND ?", (site.job.rounds,)
            ).fetchone()[0]
        )


def charged_rounds(site: Site) -> list[int]:
    """The rounds in a site's ledger, in the order they were charged."""
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT t FROM ledger WHERE t IS NOT NULL ORDER BY seq").fetchall()
    return [t for (t,) in rows]


def check_end(paths: list[Path], expected: np.ndarray | None = None) -> None:
    """Each round charged once and released once, with the bytes of an undisturbed run; one model for all."""
    sites = [load_site(path) for path in paths]
    history = in_process(sites) if expected is None else expected
    for i, site in enumerate(sites):
        assert charged_rounds(site) == list(range(1, site.job.rounds + 1))
        assert released_vectors(site).tobytes() == np.ascontiguousarray(history[:, i]).tobytes()
        assert kept_vector(site).tobytes() == released_vectors(site)[-1].tobytes()
        assert "a second, different" not in (path_log := (paths[i].parent / "log.txt").read_text()), path_log
    models = {(site.state / "model.json").read_bytes() for site in sites}
    assert len(models) == 1
