"""The end: every site gathers every last vector, and all hold the same average.

Each site passes on the last frames it has, signed by their owners, until all have all: functions of what was
released anyway, so they cost nothing. Then it writes its results, says 'done' (a frame without a vector), and
stays to answer until its neighbours have said the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...types import Array
from ..wire.mailbox import Letter, Mailbox
from ..wire.session import Session
from ..wire.waiting import Waiting
from .prepare import Ready
from .results import write_results
from .store import SiteStore

GRACE, BETWEEN = 0.5, 0.1  # seconds a site stays after all are done; seconds between questions meanwhile

log = logging.getLogger("taciturn.site")


@dataclass(frozen=True)
class SiteResult:
    """What a site holds at the end."""

    model: Array
    epsilon: float
    delta: float
    folder: Path


def end(ready: Ready, store: SiteStore, mailbox: Mailbox, session: Session, waiting: Waiting) -> SiteResult:
    """From the last round to the results of this site, and on until the neighbours have theirs."""
    letters = gather(ready, store, mailbox, session, waiting)
    model = average(letters)
    certificate = write_results(ready, store, model)
    log.info(
        "done: epsilon %.4g at delta %g; results in %s",
        certificate.epsilon,
        certificate.delta,
        ready.site.state,
    )
    linger(ready, store, mailbox, session, waiting)
    return SiteResult(model, certificate.epsilon, certificate.delta, ready.site.state)


def average(letters: dict[int, Letter]) -> Array:
    """The mean of all last vectors, added in the order of the sites: the same bits everywhere."""
    return np.asarray(np.stack([letters[number].vector for number in sorted(letters)]).mean(axis=0))


def gather(
    ready: Ready, store: SiteStore, mailbox: Mailbox, session: Session, waiting: Waiting
) -> dict[int, Letter]:
    """The last frames of all sites."""
    site, names = ready.site, ready.site.job.names
    mailbox.know_finals(store.finals())
    last = store.frame(site.job.rounds)
    if last is not None:
        session.keep(site.job.rounds, last)
    passed: set[int] = set()
    stored = set(store.finals())

    def missing() -> list[str]:
        letters = mailbox.finals()
        for number in sorted(set(letters) - passed):
            if number not in stored:
                store.add_final(number, letters[number].data)
            session.publish_final(names[number], letters[number].data)
            passed.add(number)
        return [name for number, name in enumerate(names) if number not in letters]

    def ask(owners: Sequence[str]) -> None:
        for owner in owners:
            for neighbour in site.neighbours:
                session.ask_final(neighbour, owner)

    waiting.need(missing, ask, "the last frames of all sites")
    return mailbox.finals()


def linger(ready: Ready, store: SiteStore, mailbox: Mailbox, session: Session, waiting: Waiting) -> None:
    """Answer the neighbours until each has said that it has all it needs."""
    t, site = ready.site.job.rounds + 1, ready.site
    if store.all_heard(t, [site.job.names.index(name) for name in site.neighbours]):
        return
    session.publish(t, ready.seal(t))

    def ask(names: Sequence[str]) -> None:
        for name in names:
            session.ask(name, t)

    if not waiting.until(mailbox.missing, ask, "until it is done too", longest=BETWEEN):
        left = ", ".join(mailbox.missing())
        log.warning("left while %s may still need this site; if it asks, run the same command again", left)
        return
    store.add_done(t, {number: letter.data for number, letter in mailbox.take().items()})
    leave_at = time.monotonic() + GRACE  # a neighbour that missed our 'done' asks for it meanwhile
    while session.connected() and time.monotonic() < leave_at:
        mailbox.wait(BETWEEN)
