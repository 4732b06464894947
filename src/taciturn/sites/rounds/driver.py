"""The driver: one real site from its first round to its last, resumed wherever it was stopped.

f = the node's next vector        (solve, noise, round)
commit charge, bytes and state    one transaction, on disk before the first send
publish                           the same bytes after any restart
hear every neighbour              pushed, or pulled if missed
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np

from ...admm.node import NodeState, loop
from ...errors import SiteError
from ...objective.solver.threads import one_blas_thread
from ...privacy.release import Release, drive
from ...types import Array
from ..wire.frame import decode
from ..wire.mailbox import Letter, Mailbox
from ..wire.probe import probe
from ..wire.refusals import Refusals
from ..wire.session import Session
from ..wire.waiting import Waiting
from .ending import SiteResult, end
from .prepare import Ready
from .store import SavedRound, SiteStore

log = logging.getLogger("taciturn.site")


def run_site(
    ready: Ready,
    *,
    step: Callable[[int], None] = lambda steps: None,
    watch: Callable[[Refusals], AbstractContextManager[None]] = lambda refusals: nullcontext(),
) -> SiteResult:
    """Take part in the job until its end; `step` is told how many rounds were completed.

    `watch` is entered before the site goes on the network: the place to listen to Zenoh's own log.

    Raises `SiteError` where the site cannot go on: a silent neighbour, a full disk. Nothing is lost by that;
    calling it again goes on from the same round with the same bytes.
    """
    with open_store(ready) as store:
        resumed, refusals = store.resume(), Refusals()
        mailbox = Mailbox(ready.site.job, ready.site.name, ready.trust, refusals, resumed.state.t + 1)
        with (
            one_blas_thread(),
            watch(refusals),
            Session(ready.site, mailbox, refusals) as session,
        ):
            session.keep(0, ready.seal(0))
            rounds = Rounds(ready, store, mailbox, session, step)
            if resumed.state.t:
                log.info("resumed after round %d of %d", resumed.state.t, ready.run.rounds)
                step(resumed.state.t)
            rounds.run(resumed)
            return end(ready, store, mailbox, session, rounds.waiting())


def open_store(ready: Ready) -> SiteStore:
    """The site's file, new or resumed."""
    return SiteStore(
        ready.site.database,
        job=ready.site.job.hash,
        name=ready.site.name,
        schedules=ready.site.schedules,
        start=ready.start(),
        run=ready.run,
        facts=ready.facts,
        ceiling=ready.ceiling,
    )


def sum_heard(letters: dict[int, Letter], dimension: int, clip: float) -> Array:
    """sum_j f_j(t), clipped to the public range, added in increasing j as every engine does; (1, d)."""
    total = np.zeros((1, dimension))
    for letter in letters.values():
        total += np.clip(letter.vector, -clip, clip)
    return total


@dataclass
class Rounds:
    """The rounds of one site: `frame` was committed and is not answered yet, `heard` are the last answers."""

    ready: Ready
    store: SiteStore
    mailbox: Mailbox
    session: Session
    step: Callable[[int], None]
    frame: bytes | None = None
    heard: dict[int, bytes] = field(default_factory=dict)

    def run(self, resumed: SavedRound) -> None:
        """From the round after `resumed.state` to the last."""
        ready, state, released = self.ready, resumed.state, None
        job = ready.site.job
        if state.t == job.rounds:
            return
        if resumed.frame is not None:
            self.frame = resumed.frame
            released = decode(resumed.frame, dimension=job.dimension).vector[None, :]
        before = self.store.frame(state.t)
        if before is not None:  # a neighbour one round behind may still need it
            self.session.keep(state.t, before)
        last = drive(loop(ready.node, state, commit=self.commit, released=released), self.exchange)
        self.store.finish(last, self.heard, ready.site.number)

    def commit(self, release: Release[Array, NodeState]) -> None:
        """Charge, bytes, and the state and frames that led to them: on disk, or nothing may be sent."""
        if release.charge.aborted:  # no bytes: nothing is ever sent of this round, and it is drawn no more
            self.store.abort(release.state, release.charge, self.heard)
            return
        frame = self.ready.seal(release.t, release.message)
        self.store.release(release.state, release.charge, frame, self.heard)
        self.frame = frame

    def exchange(self, release: Release[Array, NodeState]) -> Array:
        """Send what was committed; what the neighbours sent, added up."""
        job = self.ready.site.job
        if self.frame is None:
            raise SiteError(f"round {release.t} was not committed; nothing may be sent.")
        self.session.publish(release.t, self.frame)
        letters = self.hear(release.t)
        self.frame, self.heard = None, {number: letter.data for number, letter in letters.items()}
        self.step(1)
        return sum_heard(letters, job.dimension, job.clip)

    def hear(self, t: int) -> dict[int, Letter]:
        """Every neighbour's frame of round t."""
        waiting = self.waiting()

        def ask(names: Sequence[str]) -> None:
            for name in names:
                self.session.ask(name, t)

        waiting.need(self.mailbox.missing, ask, f"round {t}")
        return self.mailbox.take()

    def waiting(self) -> Waiting:
        """How this site waits for its neighbours."""
        site = self.ready.site
        dials = site.dials()

        def note(names: Sequence[str], since: float) -> None:
            numbers = {site.job.names.index(name): since for name in names}
            self.store.note_silent(self.mailbox.t, numbers)

        def why(name: str) -> str:
            if name in self.session.connected() or name not in dials:
                return ""
            return f"{name}: {probe(site, name, dials[name])}"

        return Waiting(site.file.patience, self.mailbox.wait, lambda: self.session.links, note, why)
