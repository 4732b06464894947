"""What the tests of masked jobs on real sites share: small networks, the same run in one process, frames."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from support.siteend import charged_rounds
from support.sitework import network, shards
from taciturn.engines.masked import MaskedSetup, prepare_masked, run_masked
from taciturn.masked.discrete import draw
from taciturn.masked.masks import Message, PairKeys
from taciturn.masked.method import MaskedDescent
from taciturn.masked.shares import share_of
from taciturn.masked.sums import add_up
from taciturn.masked.sums import to_integers as on_grid
from taciturn.objective.problem import Problem
from taciturn.rng import SeededStreams
from taciturn.sites.files.rows import load_rows
from taciturn.sites.files.site import Site, load_site
from taciturn.sites.rounds.masked.keys import agree, key_shown
from taciturn.sites.rounds.masked.rounds import to_integers
from taciturn.sites.wire.form import HELLO
from taciturn.sites.wire.frame import Frame, common_hash, decode

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
    site: dict[str, Any] | None = None,
    data: list[tuple[Any, Any]] | None = None,
    **options: Any,
) -> list[Path]:
    """The site files of a small masked network in `folder`."""
    dealt = shards(1 + max(max(link) for link in links), rows=100) if data is None else data
    return network(folder, links, job=JOB | (job or {}), site=SITE | (site or {}), data=dealt, **options)


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


def leaked_keys(sites: list[Site], colluder: int, others: Sequence[int]) -> PairKeys:
    """The keys of round 1 that a colluder shares with others, from what it kept and everybody has heard."""
    hellos = [frames_sent(site)[HELLO] for site in sites]
    return agree(
        colluder,
        (sites[colluder].folder / "leaked").read_bytes(),
        {other: key_shown(hellos[other].message) for other in others},
        run=common_hash(hello.digest for hello in hellos),
        names=sites[0].job.names,
        partners=others,
    )


def opened(sites: list[Site], number: int, colluders: Sequence[int]) -> list[Message]:
    """A site's messages without the masks that it shares with the colluders."""
    messages = messages_sent(sites[number])
    for colluder in colluders:
        keys = leaked_keys(sites, colluder, [number])
        for t, facts in enumerate(sites[0].job.sums.sums, start=1):
            messages[t - 1] = messages[t - 1] + keys.mask(t, facts.part, (1, facts.length))
            keys.advance()
    return messages


def bare_values(sites: list[Site], number: int) -> list[Message]:
    """What a site of a seeded run adds to each sum: its share on the grid and its noise, without masks."""
    setup, job = setup_of(sites), sites[0].job
    share = share_of(setup.problem.site(number), setup.tables.descent, setup.facts.total)
    streams, state, values = SeededStreams(job.seed or 0), setup.tables.descent.start(1), []
    for t, facts in enumerate(setup.tables.sums, start=1):
        h = share.moments() if t == 1 else share.gradient(state.y)
        noise = draw(streams, facts.std, (1, facts.length), site=number, t=t)
        values.append((on_grid(h, facts.grid).reshape(1, -1) + noise).view(np.uint64))
        state = setup.tables.after(state, add_up(messages_sent(site)[t - 1] for site in sites))
    return values


def check_masked_end(paths: list[Path]) -> None:
    """One model everywhere, that of an undisturbed run; what was heard is what the senders stored."""
    sites = [load_site(path) for path in paths]
    rounds = sites[0].job.rounds
    for site in sites:
        assert charged_rounds(site) == list(range(1, rounds + 1))
        for other in sites:
            if other is not site:
                sent, heard = frames_sent(other), frames_heard(site, other.number)
                assert all(heard[t].digest == sent[t].digest for t in (HELLO, *range(1, rounds + 2)))
    models = {(site.state / "model.json").read_bytes() for site in sites}
    assert len(models) == 1
    if sites[0].job.simulated:
        coef = json.loads(models.pop())["coef"][0]
        assert np.array(coef).tobytes() == model_in_process(sites).tobytes()


def _frames(site: Site, query: str) -> dict[int, Frame]:
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
        return {t: decode(frame, largest=10**7) for t, frame in db.execute(query)}
