"""Shared parts of the tests of masked jobs: small networks, the same run in one process, frames."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from support.siteend import charged_rounds, totals_of
from support.sitework import network, shards
from taciturn.methods.programs.masked_descent import MaskedDescent
from taciturn.methods.sums.masks import Message
from taciturn.methods.sums.prepared import PreparedSums
from taciturn.methods.sums.sums import draw
from taciturn.objective.problem import Problem
from taciturn.rng import SeededStreams
from taciturn.runtime.local import run_local
from taciturn.runtime.setup import Setup, prepare
from taciturn.sites.files.rows import load_rows
from taciturn.sites.files.site import Site, load_site
from taciturn.sites.protocol.core import read_total

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
SITE: dict[str, Any] = {"penalty": None, "noise": None, "budget": {"epsilon": 1.0, "colluding": 1}}


def masked_network(
    folder: Path,
    links: Sequence[tuple[int, int]] = RING_OF_5,
    *,
    job: dict[str, Any] | None = None,
    site: dict[str, Any] | None = None,
    data: list[tuple[Any, Any]] | None = None,
    **options: Any,
) -> list[Path]:
    """The site files of a small masked network in `folder`."""
    dealt = shards(1 + max(max(link) for link in links), rows=100) if data is None else data
    return network(folder, links, job=JOB | (job or {}), site=SITE | (site or {}), data=dealt, **options)


def setup_of(sites: list[Site]) -> Setup:
    """The same job for the in-process engine."""
    job = sites[0].job
    shares = [load_rows(site) for site in sites]
    problem = Problem(shares, loss=job.loss, C=job.C, regularization=job.regularization)
    method = MaskedDescent(epsilon=job.epsilon or 0.0, delta=job.delta, colluding=job.colluding)
    return prepare(
        problem, job.graph, method, rounds=job.rounds, repeats=1, seed=job.seed, history=True, measure=False
    )


def model_in_process(sites: list[Site]) -> np.ndarray:
    """What the in-process engine makes of the same job, (d,)."""
    history = run_local(setup_of(sites), show=False).history
    assert history is not None
    return np.asarray(history[-1, 0, 0])


def totals(site: Site) -> list[Message]:
    """The sums of all rounds that a site has completed, each (1, length)."""
    heard = [read_total(data)[2] for data in totals_of(site)]
    return [np.frombuffer(data, dtype="<u8").astype(np.uint64)[None, :] for data in heard]


def bare_values(sites: list[Site], number: int) -> list[Message]:
    """What a site of a seeded run adds to each sum: its share on the grid and its noise, without masks."""
    setup, job = setup_of(sites), sites[0].job
    assert isinstance(setup.prepared, PreparedSums)
    tables = setup.prepared.tables
    half = tables.program.private_half(setup.problem.site(number), tables.units)
    streams, state, values = SeededStreams(job.seed or 0), tables.program.start(1), []
    for t, facts in enumerate(tables.sums, start=1):
        share = half.integers(tables.program.query(state), facts)
        noise = draw(streams, facts.std, (1, facts.length), site=number, t=t)
        values.append((share + noise).view(np.uint64))
        state = tables.after(state, totals(sites[0])[t - 1])
    return values


def check_masked_end(paths: list[Path]) -> None:
    """One model everywhere, that of an undisturbed run; every round is charged once, with the same sums."""
    sites = [load_site(path) for path in paths]
    rounds = sites[0].job.rounds
    for site in sites:
        assert charged_rounds(site) == list(range(1, rounds + 1))
        assert [one.tobytes() for one in totals(site)] == [one.tobytes() for one in totals(sites[0])]
    models = {(site.state / "model.json").read_bytes() for site in sites}
    assert len(models) == 1
    if sites[0].job.simulated:
        coef = json.loads(models.pop())["coef"][0]
        assert np.array(coef).tobytes() == model_in_process(sites).tobytes()
