"""What the tests of masked jobs on real sites share: small networks, the same run in one process, frames."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from support.sitework import network, shards
from taciturn.engines.masked import MaskedSetup, prepare_masked, run_masked
from taciturn.masked.masks import Message
from taciturn.masked.method import MaskedDescent
from taciturn.objective.problem import Problem
from taciturn.sites.files.rows import load_rows
from taciturn.sites.files.site import Site
from taciturn.sites.rounds.masked.rounds import to_integers
from taciturn.sites.wire.frame import Frame, decode

RING_OF_5 = tuple((i, (i + 1) % 5) for i in range(5))
JOB: dict[str, Any] = {
    "method": "masked",
    "rounds": 6,
    "epsilon": 1.0,
    "colluding": 1,
    "dual_step": None,
    "clip": None,
    "grid": None,
    "tol": None,
}
SITE: dict[str, Any] = {"penalty": None, "noise": None, "budget": {"epsilon": 1.0}}


def masked_network(
    folder: Path,
    links: Sequence[tuple[int, int]] = RING_OF_5,
    *,
    job: dict[str, Any] | None = None,
    data: list[tuple[Any, Any]] | None = None,
    **options: Any,
) -> list[Path]:
    """The site files of a small masked network in `folder`."""
    dealt = shards(1 + max(max(link) for link in links), rows=100) if data is None else data
    return network(folder, links, job=JOB | (job or {}), site=SITE, data=dealt, **options)


def setup_of(sites: list[Site]) -> MaskedSetup:
    """The same job for the in-process engine."""
    job = sites[0].job
    shares = [load_rows(site) for site in sites]
    problem = Problem(shares, loss=job.loss, C=job.C, regularization=job.regularization)
    method = MaskedDescent(epsilon=job.epsilon or 0.0, delta=job.delta, colluding=job.colluding)
    return prepare_masked(
        problem, job.graph, method, rounds=job.rounds, repeats=1, seed=job.seed, history=True, measure=False
    )


def model_in_process(sites: list[Site]) -> np.ndarray:
    """What the in-process engine makes of the same job, (d,)."""
    history = run_masked(setup_of(sites), show=False).history
    assert history is not None
    return np.asarray(history[-1, 0, 0])


def frames_sent(site: Site) -> dict[int, Frame]:
    """By round, what a site sent, or was about to."""
    return _frames(site, "SELECT t, frame FROM outbox ORDER BY t")


def frames_heard(site: Site, sender: int) -> dict[int, Frame]:
    """By round, what a site holds of another one."""
    return _frames(site, f"SELECT t, frame FROM heard WHERE sender = {sender} ORDER BY t")


def messages_sent(site: Site) -> list[Message]:
    """A site's messages of all rounds, each (1, length)."""
    sent = frames_sent(site)
    return [to_integers(sent[t].message) for t in range(1, site.job.rounds + 1)]


def _frames(site: Site, query: str) -> dict[int, Frame]:
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
        return {t: decode(frame, largest=10**7) for t, frame in db.execute(query)}
