"""Faults of a site, injected by the tests; the package has no switch for them."""

from __future__ import annotations

import ctypes
import datetime
import hashlib
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

import taciturn.methods.admm.node as node_module
import taciturn.sites.files.difference as difference_module
import taciturn.sites.files.job as job_module
import taciturn.sites.protocol.meeting as meeting_module
import taciturn.sites.protocol.rounds as rounds_module
import taciturn.sites.rounds.driver as driver_module
import taciturn.sites.rounds.ending as ending_module
import taciturn.sites.rounds.waiting as waiting_module
import taciturn.sites.wire.config as config_module
import taciturn.sites.wire.trust as trust_module
from support.sitekeys import tell_keys
from taciturn.methods.admm.attempt import ADMMAttempt
from taciturn.methods.sums.attempt import SumsAttempt
from taciturn.objective.solver.many import ManySites
from taciturn.sites.protocol.core import Core
from taciturn.sites.protocol.events import SendFrame, StoreRecords
from taciturn.sites.protocol.frames import Kind, SignedFrame, decode, encode
from taciturn.sites.protocol.membership import Hello
from taciturn.sites.protocol.pads import pad_key
from taciturn.sites.rounds.driver import SiteDriver
from taciturn.sites.rounds.store import SiteStore

POINTS = ("before the charge", "after the charge", "after the send", "in a solve")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


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
    lie: str | None = None,
    descriptors: int | None = None,
    hash_form: int | None = None,
    stay: float | None = None,
    lease: int | None = None,
    says: float | None = None,
    tell: str | None = None,
    record: str | None = None,
) -> None:
    """In round t: die at `point`, have the clock jump by `jump` seconds, find the disk full. Or be slow.

    `stay` is for how many seconds one that stops shows a proof to neighbours that may have left; `lease` is
    for how many ms a link may give no sign of life; `says` is after how many seconds the site says for whom
    it waits.

    `hold` keeps back the message of a round until there is a file `go`, `holds` those of several rounds, each
    until there is a `go-` with its number.

    `tell` names a file that every secret the site ever has is written to, in hexadecimal. `record` names one
    for the site's own messages: round, what covers it or would show it twice, and its hash, on each line.
    """
    if stay is not None:
        driver_module.STAY = stay
    if lease is not None:
        config_module.LEASE = lease
    if says is not None:
        waiting_module.SAY = says
    if netns is not None:
        _enter(netns)
    if descriptors is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    if point == "before the charge":
        _before(SiteStore, "write", lambda store, effect: _die() if _charges(effect, t) else None)
    elif point == "after the charge":
        _after(SiteStore, "write", lambda store, effect: _die() if _charges(effect, t) else None)
    elif point == "after the send":
        _when_sent(t, lambda driver, frame: (time.sleep(0.2), _die()))
    elif point == "after the last round":
        _after(SiteStore, "write", lambda store, effect: _die() if "done" in effect.records else None)
    elif point == "after the results":
        _after(ending_module, "write_results", lambda *rest: _die())
    elif point == "in a solve":
        _die_in_solve(t)
    if jump is not None:
        _jump_clock(t, jump)
    if fill or full:
        spoil = _fill if fill else _fill_disk
        _before(SiteStore, "write", lambda store, effect: spoil() if _charges(effect, t) else None)
    for at, go in {**{k: f"go-{k}" for k in holds}, **({} if hold is None else {hold: "go"})}.items():
        _before(
            SiteDriver,
            "_store",
            lambda driver, effect, at=at, go=go: _hold(go) if _charges(effect, at) else None,
        )
    if lie == "twice":
        _when_sent(t, _send_another)
    elif lie == "late":
        _lie_late(t)
    elif lie == "invalid key":
        meeting_module.public_key = lambda secret: bytes(32)
    elif lie == "huge":
        _lie_about_values(t)
    elif lie == "vouch":
        _vouch(t)
    if slow:
        _before(node_module.Node, "primal", lambda *rest: time.sleep(slow))
        _before(SumsAttempt, "message", lambda *rest: time.sleep(slow))
    if tell is not None:
        tell_keys(Path(tell))
    if record is not None:
        _record(Path(record))
    if hash_form is not None:
        job_module.HASH_FORM = difference_module.HASH_FORM = hash_form


def _vouch(t: int) -> None:
    """Vouch for a site that lost its state: hide its charges, and its first message of round t."""
    honest, accept = Hello.pack, Core.accept

    def swallow(self: Core, data: bytes, via: int) -> SignedFrame | None:
        hidden = decode(data, largest=10**8).slot == (Kind.MESSAGE, 1, t, 0)
        return None if hidden else accept(self, data, via)

    Hello.pack = lambda self: honest(replace(self, past=()))  # type: ignore[method-assign]
    Core.accept = swallow  # type: ignore[method-assign]


def _record(file: Path) -> None:
    """Write down the site's own messages: under masks with their pads, without with their rounds."""
    honest = rounds_module.mask

    def note(t: int, cover: bytes, message: bytes) -> None:
        with file.open("a") as lines:
            lines.write(f"{t} {cover.hex()} {hashlib.sha256(message).hexdigest()}\n")

    def mask(own: int, y: bytes, keys: Any, scope: bytes, commits: Any) -> bytes:
        made = honest(own, y, keys, scope, commits)
        for j, key in keys.keys.items():
            first, second = commits[min(own, j)], commits[max(own, j)]
            note(keys.t, pad_key(key, scope, keys.t, first, second), made)
        return made

    def look(driver: SiteDriver, effect: Any) -> None:
        if isinstance(effect, SendFrame):
            frame = decode(effect.data, largest=10**8)
            if (frame.kind, frame.sender) == (Kind.MESSAGE, driver.protocol.setup.own):
                note(frame.t, b"a round", frame.payload)

    rounds_module.mask = mask
    _before(SiteDriver, "_carry_out", look)


def _lie_about_values(t: int) -> None:
    """From round t on, add what no rows can have; without masks, send values beside the clip."""
    honest, vector = rounds_module.mask, ADMMAttempt.message

    def masked(own: int, y: bytes, keys: Any, scope: bytes, commits: Any) -> bytes:
        numbers = np.frombuffer(honest(own, y, keys, scope, commits), dtype="<u8")
        return (numbers + np.uint64(2**55 if keys.t >= t else 0)).tobytes()

    def plain(self: ADMMAttempt, state: Any) -> bytes | None:
        said = vector(self, state)
        if said is None or state.t < t - 1:
            return said
        return np.full(len(said) // 8, 0.9999 * self.site.clip).astype("<f8").tobytes()

    rounds_module.mask, ADMMAttempt.message = masked, plain  # type: ignore[method-assign]


def _charges(effect: StoreRecords, t: int) -> bool:
    return any(release.charge.t == t for release in effect.releases)


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


def _when_sent(
    t: int, act: Callable[[SiteDriver, SignedFrame], Any], kind: Kind = Kind.MESSAGE, times: int = 1
) -> None:
    """After the site's own frame of round t was handed to the network."""
    left = [times]

    def look(driver: SiteDriver, effect: Any) -> None:
        if not isinstance(effect, SendFrame) or not left[0]:
            return
        frame = decode(effect.data, largest=10**8)
        if (frame.kind, frame.t, frame.sender) == (kind, t, driver.protocol.setup.own):
            left[0] -= 1
            act(driver, frame)

    _after(SiteDriver, "_carry_out", look)


def another(driver: SiteDriver, frame: SignedFrame) -> bytes:
    """The same frame with another message, signed by the same site."""
    payload = frame.payload[:-8] + bytes(8)
    return driver.ready.identity.seal(encode(frame.job, frame.slot, frame.scope, payload))


def _send_another(driver: SiteDriver, frame: SignedFrame) -> None:
    """A second frame of the same round, to all sites."""
    driver.links.send(another(driver, frame))


def _lie_late(t: int) -> None:
    """A second frame of round t once the neighbours have their results."""
    kept: list[SignedFrame] = []
    _when_sent(t, lambda driver, frame: kept.append(frame))

    def tell(driver: SiteDriver, frame: SignedFrame) -> None:
        site = driver.ready.site
        logs = [site.folder.parent / name / "log.txt" for name in site.neighbours]
        while not all("the run is done" in log.read_text() for log in logs):
            time.sleep(0.02)
        _send_another(driver, kept[0])

    _when_sent(0, tell, Kind.LEAVE)


def _die_in_solve(t: int) -> None:
    """Round t is drawn and solved; the caller never gets the minimiser."""
    begun = [0]
    _before(node_module.Node, "primal", lambda node, state: begun.__setitem__(0, state.t + 1))
    _after(ManySites, "minimise", lambda *rest: _die() if begun[0] == t else None)
    _after(SumsAttempt, "message", lambda node, state: _die() if state.t + 1 == t else None)


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
    _when_sent(t, lambda driver, frame: shift.__setitem__(0, seconds))
