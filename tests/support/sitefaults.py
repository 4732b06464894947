"""Faults of a site, put in from out here: the product has no switch for them."""

from __future__ import annotations

import ctypes
import datetime
import os
import resource
import signal
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import taciturn.admm.node as node_module
import taciturn.masked.node as masked_node_module
import taciturn.sites.files.difference as difference_module
import taciturn.sites.files.job as job_module
import taciturn.sites.rounds.driver as driver_module
import taciturn.sites.rounds.early_end.finishing as finishing_module
import taciturn.sites.rounds.ending as ending_module
import taciturn.sites.rounds.evidence as evidence_module
import taciturn.sites.wire.config as config_module
import taciturn.sites.wire.trust as trust_module
import taciturn.sites.wire.waiting as waiting_module
from taciturn.sites.rounds.exchange import Exchange
from taciturn.sites.rounds.masked.store import MaskedStore
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.store import SiteStore
from taciturn.sites.wire.config import key_of
from taciturn.sites.wire.form import ROUND
from taciturn.sites.wire.frame import decode, to_message
from taciturn.sites.wire.session import Session
from taciturn.sites.wire.waiting import Waiting

POINTS = ("before the charge", "after the charge", "after the send", "in a solve")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def _die_later() -> None:
    """Once the bytes are on their way."""
    time.sleep(0.2)
    _die()


def arrange(
    point: str | None = None,
    t: int = 1,
    netns: str | None = None,
    jump: float | None = None,
    slow: float = 0.0,
    full: bool = False,
    fill: bool = False,
    hold: int | None = None,
    holds: Sequence[int] = (),
    silent: str | None = None,
    leak: bool = False,
    lie: str | None = None,
    descriptors: int | None = None,
    edge: float | None = None,
    hash_form: int | None = None,
    ending: str | None = None,
    mute: bool = False,
    stay: float | None = None,
    lease: int | None = None,
    drowsy: float | None = None,
    asks: float | None = None,
    asleep: bool = False,
    says: float | None = None,
) -> None:
    """In round t: die at `point`, have the clock jump by `jump` seconds, find the disk full. Or be slow.

    Or write the private key of a masked run where a colluder finds it.

    Or lose patience as soon as nobody but `silent` is missing, however long that takes.

    `stay` is for how many one that stops shows the proof to neighbours that may have left;
    `lease` is for how many ms a link may give no sign of life; `drowsy` is for how many seconds the site is
    on the network before it knows again what it said and heard, which one that is `asleep` does not before
    there is a file `go`; `asks` is after how many seconds at most it asks again, `says` after how many it
    says for whom it waits.

    `hold` keeps back the frame of a round until there is a file `go`, `holds` those of several rounds, each
    until there is a `go-` with its number.
    """
    if stay is not None:
        evidence_module.STAY = stay
    if lease is not None:
        config_module.LEASE = lease
    if asks is not None:
        Waiting.until.__kwdefaults__["longest"] = asks
    if drowsy is not None:
        _before(Exchange, "resume", lambda *rest: time.sleep(drowsy))
    if asleep:
        _before(Exchange, "resume", lambda *rest: _hold("go"))
    if says is not None:
        waiting_module.SAY = says
    if netns is not None:
        _enter(netns)
    if descriptors is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    if point == "before the charge":
        _before(SiteStore, "release", lambda store, state, charge, *rest: _die() if charge.t == t else None)
    elif point == "after the charge":
        _after(SiteStore, "release", lambda store, state, charge, *rest: _die() if charge.t == t else None)
    elif point == "after the send":
        _after(
            Session, "publish", lambda session, sent, *rest: _die_later() if _own(session, sent, t) else None
        )
    elif point == "after the last round":
        _after(SiteStore, "finish", lambda *rest: _die())
    elif point == "after the results":
        _after(ending_module, "write_results", lambda *rest: _die())
    elif point == "in a solve":
        _die_in_solve(t)
    if jump is not None:
        _jump_clock(t, jump)
    if fill:
        _before(SiteStore, "release", lambda store, state, charge, *rest: _fill() if charge.t == t else None)
    if full:
        _before(
            SiteStore, "release", lambda store, state, charge, *rest: _fill_disk() if charge.t == t else None
        )
    held = {t: f"go-{t}" for t in holds} | ({} if hold is None else {hold: "go"})
    if held:
        _before(
            SiteStore,
            "release",
            lambda store, state, charge, *rest: _hold(held[charge.t]) if charge.t in held else None,
        )
    if silent is not None:
        _lose_patience([silent])
    if lie == "twice":
        _after(
            Session,
            "publish",
            lambda session, sent, *rest: _send_twice(session, t) if _own(session, sent, t) else None,
        )
    elif lie == "chain":
        _before(Exchange, "seal", lambda exchange, now, *rest: _forget_own(exchange, now, t))
    elif lie == "late":
        _before(Session, "publish", lambda session, sent, *rest: _send_late(session, sent, t))
    elif lie in LIES_AT_AN_END:
        LIES_AT_AN_END[lie]()
    elif lie is not None:
        _tell_two_stories(t)
    if ending is not None:
        _die_in_early_end(ending, t)
    if mute:
        _answer_only()
    if slow:
        _before(node_module.Node, "primal", lambda *rest: time.sleep(slow))
        _before(masked_node_module.MaskedNode, "message", lambda *rest: time.sleep(slow))
    if leak:
        _leak()
    if hash_form is not None:
        job_module.HASH_FORM = difference_module.HASH_FORM = hash_form
    if edge is not None:
        driver_module.to_message = lambda vector: to_message(np.full_like(vector, edge))


def _lie_in_last(change: Callable[[bytes], bytes]) -> None:
    """'Last' of an early end is not what it was."""
    real = finishing_module._last
    finishing_module._last = lambda exchange, t: change(real(exchange, t))


def _claim_no_round() -> None:
    """'Finish' says that no round is complete."""
    real = finishing_module.Finish.pack
    finishing_module.Finish.pack = lambda said, names: real(replace(said, completed=0), names)  # type: ignore[method-assign]


LIES_AT_AN_END = {
    "another last": lambda: _lie_in_last(lambda last: last[:-8] + np.float64(64.0).tobytes()),
    "last of another round": lambda: _lie_in_last(lambda last: ROUND.pack(1) + last[ROUND.size :]),
    "no round complete": _claim_no_round,
}


def _die_in_early_end(ending: str, t: int) -> None:
    """Once step t of an early end is `said`, on disk but not sent; `heard`, on disk; or the results are."""
    if ending == "results":
        _after(finishing_module, "write_results", lambda *rest: _die())
        return
    name = {"said": "say", "heard": "hear"}[ending]
    real = getattr(SiteStore, name)

    def wrapped(store: SiteStore[Any], at: int, data: Any, *, attempt: int = 0) -> None:
        real(store, at, data, attempt=attempt)
        if attempt and at == t:
            _die()

    setattr(SiteStore, name, wrapped)


def _answer_only() -> None:
    """Whatever is said in an early end reaches nobody but who asks for it."""
    real = Session.publish

    def publish(
        session: Session, t: int, frame: bytes, *, owner: str | None = None, attempt: int = 0
    ) -> None:
        if attempt:
            session.keep(t, frame, owner=owner, attempt=attempt)
        else:
            real(session, t, frame, owner=owner, attempt=attempt)

    Session.publish = publish  # type: ignore[method-assign]


def _before(owner: Any, name: str, act: Any) -> None:
    real = getattr(owner, name)

    def wrapped(*args: Any, **options: Any) -> Any:
        act(*args)
        return real(*args, **options)

    setattr(owner, name, wrapped)


def _after(owner: Any, name: str, act: Any) -> None:
    real = getattr(owner, name)

    def wrapped(*args: Any, **options: Any) -> Any:
        result = real(*args, **options)
        act(*args)
        return result

    setattr(owner, name, wrapped)


def _die_in_solve(t: int) -> None:
    """Round t is drawn and solved; whoever asked for the minimiser never gets it."""
    begun = [0]
    _before(node_module.Node, "primal", lambda node, state, now, *rest: begun.__setitem__(0, now))
    _after(node_module, "minimise", lambda *rest: _die() if begun[0] == t else None)


def _lose_patience(names: list[str]) -> None:
    """Time flies for whoever waits for these alone: half of the patience, and more, at each look."""
    real, shift = Waiting.until, [0.0]

    def until(self: Waiting, missing: Any, *rest: Any, **options: Any) -> bool:
        def look() -> list[str]:
            found: list[str] = missing()
            shift[0] += 0.6 * self.patience if found == names else 0.0
            return found

        return real(self, look, *rest, **options)

    clock = time.monotonic
    Waiting.until = until  # type: ignore[method-assign]
    waiting_module.time = types.SimpleNamespace(  # type: ignore[attr-defined]
        monotonic=lambda: clock() + shift[0], time=time.time, strftime=time.strftime, localtime=time.localtime
    )


def _leak() -> None:
    """A site that keeps, in `leaked`, the private key that it made for the run."""
    real = MaskedStore.secret

    def secret(self: MaskedStore) -> bytes:
        found = real(self)
        Path("leaked").write_bytes(found)
        return found

    MaskedStore.secret = secret  # type: ignore[method-assign]


def _another(session: Session, frame: bytes) -> bytes:
    """The same frame with another message, signed by the same site."""
    ready = make_ready(session._site)
    content = bytearray(decode(frame, largest=10**6).content)
    content[-8:] = np.float64(0.125).tobytes()
    return ready.identity.seal(bytes(content))


def _own(session: Session, sent: int, t: int) -> bool:
    """Whether this was round t, and the site's own frame of it is out: others' may be passed on before."""
    return sent == t and key_of(session._site.name, t) in session._outbox


def _send_twice(session: Session, t: int) -> None:
    """A second frame of round t, with other noise, to everybody."""
    key = key_of(session._site.name, t)
    session._zenoh.put(key, _another(session, session._outbox[key][1]), express=True)


def _forget_own(exchange: Exchange, now: int, t: int) -> None:
    """The frame after that of round t follows from another one of round t than everybody has."""
    if now == t + 1:
        exchange.before = bytes(31) + b"1"


def _send_late(session: Session, sent: int, t: int) -> None:
    """A second frame of round t once everybody has agreed and the neighbours have their results."""
    form, key = session._mailbox.form, key_of(session._site.name, t)
    if sent == form.done:
        session.kept_back = session._outbox[key][1]  # type: ignore[attr-defined]
    if sent == form.left:
        logs = [session._site.folder.parent / name / "log.txt" for name in session._site.neighbours]
        while not all("done: epsilon" in log.read_text() for log in logs):
            time.sleep(0.02)
        session._zenoh.put(key, _another(session, session.kept_back), express=True)  # type: ignore[attr-defined]


def _tell_two_stories(t: int) -> None:
    """Round t is not sent but answered only: to whoever asks first one frame, to the next another."""
    answered: list[bytes] = []

    def publish(
        session: Session, sent: int, frame: bytes, *, owner: str | None = None, attempt: int = 0
    ) -> None:
        if sent != t or owner is not None:
            real(session, sent, frame, owner=owner, attempt=attempt)
            return
        session.keep(sent, frame)

    def answer(session: Session, query: Any) -> None:
        key = key_of(session._site.name, t)
        if str(query.key_expr) == key and key in session._outbox:
            if len(answered) == 1:
                session.keep(t, _another(session, session._outbox[key][1]))
            answered.append(session._outbox[key][1])
        really(session, query)

    real, really = Session.publish, Session._answer
    Session.publish, Session._answer = publish, answer  # type: ignore[method-assign]


def _fill() -> None:
    """Write to the state folder until its disk is full."""
    with open("state/filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1024))
        except OSError:
            return


def _hold(go: str) -> None:
    """Wait until the test says go; the file `held` shows that this site stands there."""
    Path("held").touch()
    while not Path(go).exists():
        time.sleep(0.02)
    Path("held").unlink(missing_ok=True)


def _enter(netns: str) -> None:
    """Move this process into a network namespace."""
    with open(f"/run/netns/{netns}") as place:
        if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), "setns failed")


def _fill_disk() -> None:
    """From now on no file may grow: writing past 4 kB fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))


def _jump_clock(t: int, seconds: float) -> None:
    """From round t on the wall clock is off; the monotonic clock, by its nature, is not."""
    real, shift = time.time, [0.0]

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime.datetime:
            return datetime.datetime.fromtimestamp(time.time(), tz)

    time.time = lambda: real() + shift[0]
    trust_module.datetime = types.SimpleNamespace(datetime=Shifted, UTC=datetime.UTC)
    _before(
        Session, "publish", lambda session, sent, *rest: shift.__setitem__(0, seconds if sent >= t else 0.0)
    )
