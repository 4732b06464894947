"""Finishing early: all that are left agree on the last complete round, and hold its model and what it cost.

A site says 'finish' when its operator asks for it, when its own budget does not pay for the next round, or
when it hears that somebody's does not. S is the smallest number of complete rounds among all who finish. The
model is the average of their vectors of round S or, of a masked run, what the sums up to round S make; a
message of a round that is not complete stays hidden under its masks, for nobody shows a key. Each certificate
states every round that its site has released, complete or not.

Before it says 'done', each site compares what the others say of the run with their frames that it holds. Of
every site a neighbour does, and without its 'done' there is no model anywhere: it shows a proof instead.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from typing import NoReturn, Protocol

import networkx as nx
import numpy as np

from ....admm.averaging import network_average
from ....errors import NeighbourFailed, ParameterError, RunOver, SiteError
from ....privacy.accounting.shown import rounded_up, shown_delta
from ....types import Array
from ...files.site import Site
from ...wire.form import FINISH, LAST, ROUND, contradict
from ...wire.frame import decode
from ...wire.mailbox import Caught, Letter, Mailbox
from ...wire.trust import intact
from ..account import settle
from ..ending import SiteResult, linger
from ..evidence import state_released
from ..exchange import Exchange
from ..results import write_results
from .words import Finish, Finishing, Why, attempt_of, early_form, message_of, vector_of

log = logging.getLogger("taciturn.site")


class Ended(Protocol):
    """The rounds of some method, at an end."""

    def model_after(self, t: int) -> Array:
        """The model of a masked run after round t."""
        ...

    def note_edge(self, t: int, vectors: Mapping[int, Array]) -> None:
        """Say whose vector of round t is at the edge of the range."""
        ...


def early_mailbox(exchange: Exchange, absent: frozenset[str] = frozenset()) -> Mailbox:
    """Where the frames of an early end come in."""
    site, ready = exchange.ready.site, exchange.ready
    attempt = attempt_of(site.job.names, absent)
    form = early_form(site.job, absent)
    return Mailbox(form, site.name, ready.trust, exchange.session.refusals, FINISH, attempt=attempt)


def said_before(exchange: Exchange) -> Finishing | None:
    """An end that this site has signed already; it does no further round."""
    for data in exchange.store.early_frames(FINISH):
        said = Finish.unpack(message_of(data), exchange.ready.site.job.names)
        return Finishing(said.why, said.absent)
    return None


def check_absent(site: Site, absent: frozenset[str]) -> None:
    """Those who are left must be sites of the job that still reach each other."""
    names = site.job.names
    for name in sorted(absent):
        if name not in names or name == site.name:
            raise ParameterError(f"`--without` must name another site of the job; got {name!r}.")
    left = nx.Graph([(a, b) for a, b in site.job.links if a not in absent and b not in absent])
    left.add_nodes_from(name for name in names if name not in absent)
    if not nx.is_connected(left):
        raise ParameterError(
            f"without {', '.join(sorted(absent))} the sites that are left have no way to each other."
        )


def finish(main: Exchange, rounds: Ended, finishing: Finishing) -> SiteResult:
    """End the run with all who are left; raises `RunOver` where no round is complete."""
    exchange = _turn(main, finishing)
    ready, store, form = main.ready, main.store, exchange.mailbox.form
    names, completed = ready.site.job.names, int(store.resume().state.t)
    own = Finish(completed, finishing.why, finishing.absent)
    finishes = _say(exchange, FINISH, own.pack(names))
    _compare(main, finishes, {n: main.mailbox.newest(names[n]) for n in finishes})
    said = {n: Finish.unpack(letter.frame.message, names) for n, letter in finishes.items()}
    said[ready.site.number] = Finish.unpack(_own(exchange, FINISH), names)
    reason, last = _reason(said, names), min(entry.completed for entry in said.values())
    log.warning("the run ends after round %d of %d: %s", last, ready.site.job.rounds, reason)
    if last < (2 if ready.site.job.masked else 1):  # the first round of a masked run makes no model
        _end_without_model(exchange, reason)
    make = _masked_model if ready.site.job.masked else _average
    model = make(exchange, rounds, last)
    _say(exchange, form.done, b"")
    present = [name for name in names if name not in finishing.absent]
    ended = {"round": last, "reason": reason, "sites": present}
    certificate = write_results(ready, store, model, ended=ended)
    log.info("done: epsilon %s at delta %s", rounded_up(certificate.epsilon), shown_delta(certificate.delta))
    settle(ready, store)
    linger(exchange)
    return SiteResult(model, certificate.epsilon, certificate.delta, ready.site.state, reason)


def _end_without_model(exchange: Exchange, reason: str) -> NoReturn:
    """The same words as with a model, about zeros: whoever has not heard everything yet can still ask."""
    form = exchange.mailbox.form
    _say(exchange, LAST, bytes(form.size(LAST)))
    _say(exchange, form.done, b"")
    told = state_released(exchange.ready, exchange.store, None, reason)
    linger(exchange)
    raise RunOver(f"the run ends before there is a model: {reason}. {told}.")


def _turn(main: Exchange, finishing: Finishing) -> Exchange:
    """The exchange of the early end, with all that was said in it before a stop."""
    session, store, absent = main.session, main.store, finishing.absent
    if session.early is None or absent:
        session.early = early_mailbox(main, absent)
    exchange = Exchange(main.ready, store, session.early, session, before=main.before, main=main.mailbox)
    exchange.whereabouts, exchange.agreed = main.whereabouts, finishing.why is Why.AGREED
    session.where, session.told = main.whereabouts.pack, main.whereabouts.told
    done = exchange.mailbox.form.done
    others = [
        data
        for data in store.early_frames(done)
        if decode(data, largest=len(data)).attempt != exchange.attempt
    ]
    if others:
        raise SiteError("this site has finished already, with others than these; it does so once.")
    for t in range(FINISH, exchange.mailbox.form.left + 1):
        for sender, data in store.frames_heard(t, attempt=exchange.attempt).items():
            exchange.mailbox.know(data)
            session.keep(t, data, owner=main.ready.site.job.names[sender], attempt=exchange.attempt)
    return exchange


def _say(exchange: Exchange, t: int, message: bytes) -> dict[int, Letter]:
    letters = exchange.say(t, message)
    data = {number: letter.data for number, letter in letters.items()}
    exchange.store.hear(t, data, attempt=exchange.attempt)
    return letters


def _own(exchange: Exchange, t: int) -> bytes:
    data = exchange.store.frame(t, attempt=exchange.attempt)
    if data is None:
        raise SiteError("the site's file does not hold what this site has said.")
    return message_of(data)


def _last(exchange: Exchange, t: int) -> bytes:
    """Round t, and this site's own vector of it, which left it long ago."""
    data = exchange.store.frame(t)
    if data is None:
        raise SiteError(f"the site's file does not hold its frame of round {t}.")
    return ROUND.pack(t) + message_of(data)


def _compare(exchange: Exchange, words: dict[int, Letter], held: Mapping[int, bytes | None]) -> None:
    """What others say of the run is what they said in it, as far as this site holds that; or `Caught`."""
    for number, letter in words.items():
        data = held.get(number)
        if data is None:
            continue
        with exchange.store.readable():
            released = Letter(data, exchange.ready.open_frame(data))
        if contradict(released.frame, letter.frame) and intact(released.frame):
            raise Caught(exchange.ready.site.job.names[number], released, letter)


def _average(exchange: Exchange, rounds: Ended, t: int) -> Array:
    """The model of round t: all show the vectors that they sent in it."""
    letters = _say(exchange, LAST, _last(exchange, t))
    _compare(exchange, letters, exchange.store.frames_heard(t))
    vectors = _vectors(exchange, letters, t)
    rounds.note_edge(t, {number: vectors[number] for number in letters})
    return network_average(np.stack([vectors[number] for number in sorted(vectors)]))


def _vectors(exchange: Exchange, letters: dict[int, Letter], t: int) -> dict[int, Array]:
    """Everybody's vector of round t, this site's own too, by number."""
    words = {number: letter.frame.message for number, letter in letters.items()}
    words[exchange.ready.site.number] = _own(exchange, LAST)
    found = {number: vector_of(message) for number, message in words.items()}
    other = [exchange.ready.site.job.names[number] for number, (of, _) in found.items() if of != t]
    if other:
        raise NeighbourFailed(
            f"{', '.join(other)} signed a last vector that is not of round {t}, where the run ends. No model "
            "is written."
        )
    return {number: vector for number, (_, vector) in found.items()}


def _masked_model(exchange: Exchange, rounds: Ended, t: int) -> Array:
    """The model of round t: all made the same one of the sums."""
    model = rounds.model_after(t)
    names, own = exchange.ready.site.job.names, _hash(model)
    letters = _say(exchange, LAST, own)
    other = [names[number] for number, letter in letters.items() if letter.frame.message != own]
    if other:
        raise NeighbourFailed(f"{', '.join(other)} made another model of the same sums. No model is written.")
    return model


def _hash(model: Array) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(model, dtype="<f8").tobytes()).digest()


def _reason(said: dict[int, Finish], names: tuple[str, ...]) -> str:
    """Why it ends, in words."""
    spent = [names[number] for number, entry in sorted(said.items()) if entry.why is Why.BUDGET]
    absent = sorted(next(iter(said.values())).absent)
    without = f", without {', '.join(absent)}" if absent else ""
    if spent:
        return f"the budget of {', '.join(spent)} does not pay for another round{without}"
    return f"all that are left agreed to finish{without}"
