"""The exchange: this site's frame of a round goes out, those of the others come in.

Frames are chained (`before`, `common` of frame.py), stored before they are sent, asked for where they are
missed, and passed on where a neighbour may not hear them itself. After a silence of half a second what has
come so far is written to disk: a neighbour that loses its state meanwhile can be shown its own frames.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ...errors import NeighbourFailed
from ..wire.copies.word import HERE, Files, Here
from ..wire.form import FINISH, HELLO, READY
from ..wire.frame import NOTHING, Frame, FrameRefused
from ..wire.mailbox import Letter, Mailbox
from ..wire.probe import probe
from ..wire.session import Session
from ..wire.trust import intact
from ..wire.waiting import Waiting
from .early_end.words import Completed, look_early
from .network import write_seen
from .prepare import Ready
from .store import SiteStore
from .whereabouts import Whereabouts

log = logging.getLogger("taciturn.site")


@dataclass
class Exchange:
    """The frames of one site.

    before : the digest of its last one.
    links, asked_at : how many links had come up when the neighbours were last asked what they know of this
        site, and when that was.
    main : the mailbox of the run itself, where this is the exchange of its early end.
    agreed : whether that end was asked for by the operator, and nobody's budget demands it.
    """

    ready: Ready
    store: SiteStore[Any]
    mailbox: Mailbox
    session: Session
    before: bytes = NOTHING
    links: int = -1
    asked_at: float = 0.0
    main: Mailbox | None = None
    agreed: bool = False
    whereabouts: Whereabouts = field(init=False)
    here: Here = field(init=False)
    _kept: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        site = self.ready.site
        self.whereabouts = Whereabouts(site.number, site.job.names)
        self.session.where, self.session.told = self.whereabouts.pack, self.whereabouts.told
        self.here = self.session.here = self.session.here or Here(
            lambda numbers, common: self.ready.seal(HELLO, numbers, common=common, attempt=HERE),
            self._is_own,
            lambda: Files.MOVED if self.store.moved else Files.AT_HOME,
        )

    def _is_own(self, frame: Frame) -> bool:
        """Whether this very site signed a frame, in this process or another."""
        site = self.ready.site
        if (frame.job, frame.sender) != (site.job.hash, site.number):
            return False
        try:
            self.ready.trust.check(frame, site.name, ever=True)
        except FrameRefused:
            return False
        return True

    def resume(self, t: int) -> None:
        """Know again what this site said and heard up to round t, and what it has said since."""
        with self.store.readable():
            for at in (HELLO, t, t + 1, t + 2):
                self._know_again(at, at <= t)

    def _know_again(self, at: int, past: bool) -> None:
        names, own = self.ready.site.job.names, self.ready.site.number
        said = self.store.frame(at)
        if said is not None:
            self._check_kept(said, at, own)
            said = self.ready.reseal(said)
            letter = self.mailbox.know(said)
            self.session.keep(at, said)
            if past:
                self.before = letter.frame.digest
        for sender, data in self.store.frames_heard(at).items():  # this site's own 'ready' among them
            self._check_kept(data, at, sender)
            data = self.ready.reseal(data) if sender == own else data
            self.mailbox.know(data)
            if self.ready.form.everybody(at):
                self.session.keep(at, data, owner=names[sender])

    def _check_kept(self, data: bytes, t: int, sender: int) -> None:
        """A frame on disk is as it was: one bit more or less would be a second frame of that round."""
        frame = self.ready.open_frame(data)
        same = (frame.job, frame.t, frame.sender) == (self.ready.site.job.hash, t, sender)
        if not same or not intact(frame):
            raise ValueError("not the frame that was kept")

    @property
    def attempt(self) -> int:
        """0 for the run itself; another number where it ends early."""
        return self.mailbox.attempt

    def seal(self, t: int, message: bytes = b"") -> bytes:
        """This site's frame of round t, after all that it said and heard; not sent, not even stored."""
        common = self.mailbox.common(t)
        return self.ready.seal(t, message, before=self.before, common=common, attempt=self.attempt)

    def say(self, t: int, message: bytes = b"") -> dict[int, Letter]:
        """Say something that costs nothing, and hear the others say it."""
        self.announce(t, message)
        return self.hear(t)

    def announce(self, t: int, message: bytes = b"") -> None:
        """Say something that costs nothing, the same each time."""
        frame = self.store.frame(t, attempt=self.attempt)
        if frame is None:
            frame = self.seal(t, message)
            self.store.say(t, frame, attempt=self.attempt)
        self.publish(t, frame)

    def send(self, t: int, frame: bytes) -> dict[int, Letter]:
        """Send what is on disk already; the others' frames of the same round, by number."""
        self.publish(t, frame)
        letters = self.hear(t)
        log.debug("round %d is complete", t, extra={"facts": {"event": "round", "round": t}})
        self.session.forget(t - 1)
        return letters

    def publish(self, t: int, frame: bytes) -> None:
        """Send what is on disk already, under the certificate of today."""
        sealed = self.ready.reseal(frame)
        self.before = self.mailbox.know(sealed).frame.digest
        self.session.publish(t, sealed, attempt=self.attempt)

    def hear(self, t: int) -> dict[int, Letter]:
        """The frames of round t of all who are wanted in it, chained to what they said before."""
        self.waiting().need(self.missing, lambda owners: self.ask(t, owners), self._what(t))
        if doubted := self.mailbox.find_doubts():
            self._settle(t, doubted)
        return self.mailbox.take()

    def missing(self) -> list[str]:
        """Whose frames have not come; what has come is passed on."""
        self.session.reopen_after_crowd()
        for mailbox in (self.mailbox,) if self.main is None else (self.mailbox, self.main):
            for t, owner, data in mailbox.to_pass_on():
                self.session.publish(t, data, owner=owner, attempt=mailbox.attempt)
        if self.main is not None:
            self.main.missing()  # a proof ends this as well
            self._look_whether_completed(self.main)
        elif READY < self.mailbox.t <= self.ready.form.rounds and (early := self.session.early) is not None:
            look_early(early, self.ready.site.name)
        names = self.mailbox.missing()
        if self.main is None:  # after that: what came before the last frame is looked at before it counts
            self.mailbox.look_back(self.store.frames_heard)
        return names

    def _look_whether_completed(self, main: Mailbox) -> None:
        """Of those whose 'finish' is waited for, has one completed the run itself?"""
        form, own, names = main.form, self.ready.site.number, self.ready.site.job.names
        if not self.agreed or self.mailbox.t != FINISH or self.store.frame(form.rounds) is None:
            return
        for number in main.letters(form.done):
            if number != own and names[number] not in self.mailbox.form.absent:
                raise Completed(names[number])

    def ask(self, t: int, owners: Sequence[str]) -> None:
        """Ask for frames that have not come: their owners, or whoever may have heard them."""
        self._write()
        self.session.ask_where()
        with suppress(OSError):  # only to be looked at: no room or no descriptor is no reason to stop
            write_seen(self.ready.site.state, self.whereabouts)
        neighbours = self.ready.site.neighbours
        for neighbour in neighbours:  # who waits shows that it is there
            self.session.ask_recall(neighbour)
        for owner in owners:
            for neighbour in (owner,) if owner in neighbours else neighbours:
                self.session.ask(neighbour, t, owner, attempt=self.attempt)
        if self.main is None and self.session.early is not None:
            for neighbour in neighbours:
                self.session.ask(neighbour, FINISH, attempt=self.session.early.attempt)
        elif self.main is not None and self.agreed and self.mailbox.t == FINISH:
            for neighbour in neighbours:
                for owner in owners:
                    self.session.ask(neighbour, self.main.form.done, owner, attempt=self.main.attempt)

    def _write(self) -> None:
        """What has come of this round so far, on disk."""
        t = self.mailbox.t
        news = {n: letter.data for n, letter in self.mailbox.so_far().items() if (t, n) not in self._kept}
        if news:
            self.store.hear(t, news, attempt=self.attempt)
            self._kept |= {(t, number) for number in news}

    def _settle(self, t: int, doubted: Sequence[str]) -> None:
        """Somebody holds another frame of the round before: look for it, which ends in `Caught`."""
        names, site = self.ready.site.job.names, self.ready.site
        log.warning("%s and this site hold different frames of %s", ", ".join(doubted), self._what(t - 1))

        def ask(_: Sequence[str]) -> None:
            for neighbour in site.neighbours:
                for owner in names:
                    self.session.ask(neighbour, t - 1, owner, attempt=self.attempt)

        def still() -> list[str]:
            self.missing()
            return list(doubted)

        self.waiting(30.0).until(still, ask, f"which frames of {self._what(t - 1)} they hold", longest=1.0)
        raise NeighbourFailed(
            f"{', '.join(doubted)} signed that the frames of {self._what(t - 1)} are others than those that "
            "this site and its neighbours hold, and no such frame is to be found. No model is written."
        )

    def _what(self, t: int) -> str:
        form = self.mailbox.form
        if self.main is not None:
            return "until it finishes too" if t == form.left else "the early end"
        words = {
            HELLO: "the opening",
            READY: "the opening",
            form.done: "the end",
            form.left: "until it is done too",
        }
        return words.get(t, f"round {t}")

    def _who_would_finish(self) -> str:
        """Who has signed that the run shall end here, as long as this site has not; and how to agree."""
        early, site = self.session.early, self.ready.site
        if self.main is not None or early is None:
            return ""
        names = [site.job.names[n] for n in early.letters(FINISH) if n != site.number]
        if not names:
            return ""
        return (
            f"; {', '.join(names[:5])} wants to finish the run here, and releases nothing more: to agree, "
            "stop this site and run taciturn site finish"
        )

    def waiting(self, most: float | None = None) -> Waiting:
        """How this site waits for the others."""
        site = self.ready.site

        def note(names: Sequence[str], since: float) -> None:
            self.store.note_silent(self.mailbox.t, {site.job.names.index(name): since for name in names})

        def why(name: str) -> str:
            refused = self.session.reason(name)
            if refused:
                return f"{name}: {refused}"
            dials = site.dials()
            if name in self.session.connected() or name not in dials:
                return ""
            return f"{name}: {probe(site, name, dials[name])}"

        def hint() -> str:
            blockers = self.whereabouts.blockers()
            direct = set(self.mailbox.missing()) if blockers else set()
            said = "" if set(blockers) <= direct else f"; {', '.join(blockers[:5])} holds up the run"
            return said + self._who_would_finish()

        return Waiting(
            min(site.file.patience, most or site.file.patience),
            self.mailbox.wait,
            lambda: self.session.links,
            note,
            why,
            look=lambda names, since: self.whereabouts.be((self.main or self.mailbox).t, names, since),
            hint=hint,
        )
