"""The opening: what do the neighbours know of this site, and is everybody there? Nothing is spent before.

Before it may release anything, after every start, a site asks each neighbour for the newest frame of its own
that it holds. One that is not in the outbox shows that the state was lost, put back from a backup, or copied:
fresh noise for a round that has left already would be a second release. So the site stops.

Then every site says hello with a fresh nonce, kept on disk, and hears everybody's. `common` of round 1 is the
hash of all of them: the id of this run. As long as a neighbour has not begun, nothing of it can have been
released, so a site that lost its state may say hello again; the later stamp counts.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence

from ..wire.form import HELLO, NONCE, STAMP
from ..wire.mailbox import Forgotten, Letter, stamp_of
from .exchange import Exchange

log = logging.getLogger("taciturn.site")


def recall(exchange: Exchange) -> int:
    """Hear from every neighbour that it knows no frame of this site that this site does not; or `Forgotten`.

    Returns the stamp of the latest hello of a run that never began, or 0.
    """
    site, session, mailbox = exchange.ready.site, exchange.session, exchange.mailbox
    session.recalled.clear()
    exchange.links = session.links

    def missing() -> list[str]:
        exchange.missing()
        return [name for name in site.neighbours if name not in session.recalled]

    def ask(names: Sequence[str]) -> None:
        for name in names:
            session.ask_recall(name)

    ask(site.neighbours)
    exchange.waiting().need(missing, ask, "what it knows of this site")
    latest = 0
    for name, recalled in dict(session.recalled).items():
        letter = mailbox.offer_recalled(name, recalled.frame) if recalled.frame else None
        if letter is None or _known(exchange, letter):
            continue
        if letter.frame.t > HELLO or recalled.t > HELLO:
            raise Forgotten(name, letter)
        latest = max(latest, stamp_of(letter.frame)[0])
    return latest


def meet(exchange: Exchange, latest: int, greeting: bytes = b"") -> dict[int, Letter]:
    """Say hello and hear everybody's; the frames of all others, by number."""
    stamp = max(time.time_ns(), latest + 1)
    return exchange.say(HELLO, STAMP.pack(stamp) + os.urandom(NONCE) + greeting)


def _known(exchange: Exchange, letter: Letter) -> bool:
    """Whether a frame of this site is in its outbox."""
    said = exchange.store.frame(letter.frame.t)
    return said is not None and exchange.ready.open_frame(said).digest == letter.frame.digest


def seal_release(exchange: Exchange, t: int, message: bytes) -> bytes:
    """The frame of round t, about to be committed: nobody may know of another one."""
    exchange.missing()
    if exchange.links != exchange.session.links:  # a copy of this site may have been there
        recall(exchange)
    return exchange.seal(t, message)
