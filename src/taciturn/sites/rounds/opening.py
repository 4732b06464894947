"""The opening: what do the neighbours know of this site, and is everybody there? Nothing is spent before.

Before it may release anything, after every start, a site asks each neighbour for the newest frame of its own
that it holds. One that is not in the outbox shows that the state was lost, put back from a backup, or copied:
fresh noise for a round that has left already would be a second release. So the site stops. It stops as well
where another process signs, with its name and key, that it is there (`wire/copies`): a copy, started
somewhere else. Where a neighbour only says that it sees two, the site waits: for the link of the process
before it to be gone, which a starved neighbour may notice late, or for the copy to show itself.

The original has precedence: one whose files are where they were written does not stop for one that signs that
its own were moved. That one stops; the original waits for it to be gone, as it does where it is only told of
two, and then asks everybody anew. So it goes on as it would if it were stopped and started again by hand:
after answers from all neighbours of which none counts two and none shows another process that is running.

Then every site says hello with a fresh nonce, kept on disk, hears everybody's, and signs which it holds:
'ready', with the hash of all of them, the id of this run. Round 1 begins where everybody has signed the same.
Until then a site that lost its state may say hello again, and the later stamp counts: nothing was released.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence

from ...errors import NeighbourFailed, StateLost
from ..wire.copies.askers import SEEN
from ..wire.copies.word import Files
from ..wire.form import HELLO, NONCE, READY, STAMP
from ..wire.mailbox import Forgotten, Letter, stamp_of
from .exchange import Exchange

STAY = 20.0  # seconds at most to answer the neighbours before this site stops

log = logging.getLogger("taciturn.site")


def recall(exchange: Exchange, absent: frozenset[str] = frozenset()) -> int:
    """Hear from every neighbour that it knows no frame of this site that this site does not; or `Forgotten`.

    Returns the stamp of the latest hello that led to nothing, or 0.
    """
    while True:
        latest = _recall_once(exchange, absent)
        if not exchange.here.proved:
            return latest
        log.warning("a copy of this site was running, and is not seen any more: asking all neighbours anew")


def _recall_once(exchange: Exchange, absent: frozenset[str]) -> int:
    """`recall`, beside a copy that gives way perhaps: see `_look_for_copy`."""
    site, session = exchange.ready.site, exchange.session
    session.recalled = {}  # whatever was asked before counts no more
    exchange.here.renew()
    exchange.links, exchange.asked_at = session.links, time.monotonic()

    def missing() -> list[str]:
        _look_for_copy(exchange)
        return [name for name in site.neighbours if name not in session.recalled and name not in absent]

    def crowded() -> list[str]:
        _look_for_copy(exchange)
        _look_at_answers(exchange)
        return [name for name, recalled in dict(session.recalled).items() if recalled.processes > 1]

    def ask(names: Sequence[str]) -> None:
        session.ask_where()
        for name in names:
            session.ask_recall(name)

    ask(site.neighbours)
    exchange.waiting().need(missing, ask, "what it knows of this site")
    if not exchange.waiting().until(crowded, ask, "it sees two processes of this site", longest=0.5):
        names = ", ".join(crowded())
        why = f"no copy has shown itself: it does not answer, or {names} is mistaken"
        if exchange.here.proved:
            why = "a copy, whose files were moved, has shown itself and does not stop"
        raise NeighbourFailed(
            f"{names} sees two processes with the name and key of this site, it says, and {why}. Nothing is "
            "released, everything is kept: run the same command to go on."
        )
    return _look_at_answers(exchange)


def _look_for_copy(exchange: Exchange) -> None:
    """Raise what ends the run; where another process has signed that it is there, `StateLost`.

    Unless this one is the original, and all others have signed that their files were moved.
    """
    exchange.missing()
    proved, moved = exchange.here.proved, exchange.store.moved
    if moved and Files.AT_HOME in proved:
        raise StateLost(
            "there are two processes with the name and key of this site: the original is running, with its "
            "files where they were written, and has signed that it is there. Those of this one were moved, "
            "copied or put back. Nothing is released by this one; stop it for good, or the original."
        )
    if proved and (moved or proved != {Files.MOVED}):
        raise StateLost(
            "there are two processes with the name and key of this site: a copy of it is running, and has "
            "signed that it is there. Nothing is released by this one; stop it for good, or the other."
        )


def _look_at_answers(exchange: Exchange) -> int:
    """Raise `Forgotten` where a neighbour holds a frame that this site does not know of; see `recall`."""
    session, latest = exchange.session, 0
    forgotten: list[Forgotten] = []
    for name, recalled in dict(session.recalled).items():
        letter = exchange.mailbox.offer_recalled(name, recalled.frame) if recalled.frame else None
        if letter is None or _known(exchange, letter):
            continue
        if letter.frame.t > HELLO or recalled.t > READY:
            forgotten.append(Forgotten(name, letter))
        else:
            latest = max(latest, stamp_of(letter.frame)[0])
    if forgotten:
        answer_first(exchange, {name for name, other in session.recalled.items() if not other.vouches})
        raise max(forgotten, key=_released)
    return latest


def _released(forgotten: Forgotten) -> tuple[bool, int]:
    """The frame that shows most to have left: the newest of the run itself, whoever was first to answer."""
    frame = forgotten.letter.frame
    return frame.attempt == 0, frame.t


def be_vouched_for(exchange: Exchange) -> None:
    """A state that was put back, or copied, needs a neighbour that has forgotten nothing; or `StateLost`.

    `recall` has heard from all of them, and none knows a frame that this site does not. A neighbour that is
    behind what this site has heard of it has lost its own state.
    """
    store, session = exchange.store, exchange.session
    if not store.moved:
        return
    recalled = session.recalled.values()
    if not any(other.vouches and other.t >= exchange.mailbox.t - 1 for other in recalled):
        answer_first(exchange, set(exchange.ready.site.neighbours))
        raise StateLost(
            "this `state` was put back from a backup, or copied, and so were those of all its neighbours, or "
            "their machines lost power: nobody can say what has left since it was written. Nothing is "
            "released. If no site has released anything since, say so: taciturn site run --newest-state"
        )
    store.stay(vouched=True)


def answer_first(exchange: Exchange, names: set[str]) -> None:
    """Stay until these have heard what this site knows of them, or they could not know that they stop too."""
    end = time.monotonic() + min(STAY, exchange.ready.site.file.patience)
    while names - exchange.session.answered and time.monotonic() < end:
        exchange.mailbox.wait(0.2)
    if names:
        time.sleep(0.2)  # for what is on its way


def meet(exchange: Exchange, latest: int, greeting: bytes = b"") -> dict[int, Letter]:
    """Say hello, hear everybody's, and be ready with everybody; all 'ready' frames, this site's too."""
    stamp = max(time.time_ns(), latest + 1)
    exchange.say(HELLO, STAMP.pack(stamp) + os.urandom(NONCE) + greeting)
    hello, mailbox, said = exchange.before, exchange.mailbox, b""

    def missing() -> list[str]:
        nonlocal said
        if said != mailbox.common(READY):  # a hello was said again
            said, exchange.before = mailbox.common(READY), hello
            exchange.publish(READY, exchange.seal(READY))
        return exchange.missing()

    def ask(owners: Sequence[str]) -> None:
        exchange.ask(HELLO, owners)
        exchange.ask(READY, owners)

    exchange.waiting().need(missing, ask, "the opening")
    exchange.store.hear(HELLO, {n: letter.data for n, letter in mailbox.letters(HELLO).items()})
    mailbox.take()
    return mailbox.letters(READY)


def _known(exchange: Exchange, letter: Letter) -> bool:
    """Whether a frame of this site is in its outbox; 'ready' if it is about the hello that is."""
    ready = letter.frame.t == READY
    said = exchange.store.frame(HELLO if ready else letter.frame.t)
    wanted = letter.frame.before if ready else letter.frame.digest
    return said is not None and exchange.ready.open_frame(said).digest == wanted


def seal_release(exchange: Exchange, t: int, message: bytes) -> bytes:
    """The frame of round t, about to be committed: nobody may know of another one."""
    exchange.missing()
    unseen = exchange.ready.site.job.relay is not None and time.monotonic() - exchange.asked_at > SEEN / 2
    if exchange.links != exchange.session.links or unseen:  # a copy of this site may have been there
        recall(exchange)
    return exchange.seal(t, message)
