"""The end: every site holds every last frame, says which, and all hold the same average.

The frames of the last round come to all sites, each signed by its owner: functions of what was released
anyway, so they cost nothing. Then each site says 'done', a frame with the hash of all last frames in it, and
writes its results only when everybody has said the same hash. It stays until its neighbours have their
results too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...privacy.accounting.shown import rounded_up, shown_delta
from ...types import Array
from ..wire.form import HELLO
from ..wire.frame import to_vector
from .exchange import Exchange
from .prepare import Ready
from .results import write_results
from .store import SavedRound, SiteStore

GRACE, BETWEEN = 0.5, 0.1  # seconds a site stays after all are done; seconds between questions meanwhile

log = logging.getLogger("taciturn.site")


@dataclass(frozen=True)
class SiteResult:
    """What a site holds at the end; `reason` says why, where that is not after the last round."""

    model: Array
    epsilon: float
    delta: float
    folder: Path
    reason: str = ""


def resumes_at(ready: Ready, store: SiteStore[Any], resumed: SavedRound[Any]) -> int:
    """The round that a site waits for when it is started: hello, the next one, or what is left of the end."""
    form, name, t = ready.form, ready.site.name, int(resumed.state.t)
    if t == 0 and resumed.frame is None:
        return HELLO
    at = t + 1
    while form.rounds < at <= form.left and len(store.frames_heard(at)) == len(form.wanted(name, at)):
        at += 1
    return at


def end(exchange: Exchange, model_of: Callable[[], Array]) -> SiteResult:
    """From the last round to the results of this site, and on until the neighbours have theirs."""
    ready, store, mailbox, form = exchange.ready, exchange.store, exchange.mailbox, exchange.ready.form
    if mailbox.t == form.done:
        letters = exchange.say(form.done)
        store.hear(form.done, {number: letter.data for number, letter in letters.items()})
    model = model_of()
    certificate = write_results(ready, store, model)
    log.info(
        "done: epsilon %s at delta %s; results in %s",
        rounded_up(certificate.epsilon),
        shown_delta(certificate.delta),
        ready.site.state,
    )
    if mailbox.t == form.left:
        linger(exchange)
    return SiteResult(model, certificate.epsilon, certificate.delta, ready.site.state)


def last_vectors(ready: Ready, store: SiteStore[Any]) -> dict[int, Array]:
    """The vectors of the last round of all sites, by number."""
    T = ready.site.job.rounds
    frames = store.frames_heard(T)
    last = store.frame(T)
    if last is not None:
        frames[ready.site.number] = last
    return {number: to_vector(ready.open_frame(data).message) for number, data in frames.items()}


def linger(exchange: Exchange) -> None:
    """Answer the neighbours until each has said that it has its results."""
    form, store, mailbox, session = (
        exchange.mailbox.form,
        exchange.store,
        exchange.mailbox,
        exchange.session,
    )
    t = form.left
    exchange.announce(t)
    if not exchange.waiting().until(
        exchange.missing, lambda names: exchange.ask(t, names), "until it is done too", longest=BETWEEN
    ):
        left = ", ".join(mailbox.missing())
        log.warning("left while %s may still need this site; if it asks, run the same command again", left)
        return
    data = {number: letter.data for number, letter in mailbox.take().items()}
    store.hear(t, data, attempt=exchange.attempt)
    leave_at = time.monotonic() + GRACE  # a neighbour that missed our 'done' asks for it meanwhile
    while session.connected() and time.monotonic() < leave_at:
        mailbox.wait(BETWEEN)
