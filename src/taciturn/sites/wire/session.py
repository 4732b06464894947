"""The session: frames over Eclipse Zenoh. No other file sends or receives any.

Frames are pushed as they are made and can be pulled at any time, since a push before the link is up is lost
without a word. `open` does not fail on an untrusted certificate either: who is really at the other end of a
link is looked at here, by the name in the certificate.
"""

from __future__ import annotations

import json
import logging
import re
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import MissingExtra, SiteError
from ..files.difference import difference, show_keys
from ..files.site import Site
from .config import key_of, key_of_job, key_of_proof, key_of_recall, key_of_where, site_config
from .copies.askers import Askers
from .copies.word import Here
from .form import CHECK
from .frame import PROOF, pack_proof, size_cap, unpack_proof
from .mailbox import Mailbox
from .meter import Door, Meter, take_descriptors
from .probe import address, probe
from .refusals import Refusals
from .waiting import Waiting

try:
    import zenoh
except ImportError as error:
    raise MissingExtra("eclipse-zenoh", "zenoh") from error

_BLOCK = zenoh.CongestionControl.BLOCK
_FRAME = re.compile(r"taciturn/([a-z0-9-]+)/(\d{1,10})\.(-?\d{1,8})/([a-z0-9-]+)")
_OTHER = re.compile(r"taciturn/([a-z0-9-]+)/(?:(proof)|(job)|(recall)/([a-z0-9-]+)|(where))")
_POSITION = struct.Struct("<IiB")  # attempt, round, processes of the asker on the line and two marks:
FORGETFUL, SHOWS = (
    128,
    64,
)  # does not vouch; the word of another process, after its length, comes before the frame
_LENGTH = struct.Struct("<H")
_ASK_TIMEOUT = 5.0
REOPENED = 20  # times to try to open a port again that was ours a moment ago

log = logging.getLogger("taciturn.site")


@dataclass(frozen=True)
class Recalled:
    """What a neighbour answers: the round that it is in, how many processes of this site it sees (0 behind a
    relay), and the newest frame of this site that it holds. It vouches for that unless its own state was put
    back or copied, or its machine lost power, and it may have held a newer one."""

    t: int
    processes: int
    frame: bytes
    vouches: bool = True


class Session:
    """One site on the network. Use it in a `with` block, and call `listen` in it.

    Arriving frames go to the mailbox. The outbox, a mapping from keys to frames, answers those who ask; put a
    frame there only once it is on disk.
    """

    def __init__(self, site: Site, mailbox: Mailbox, refusals: Refusals) -> None:
        self._site, self._mailbox, self.refusals = site, mailbox, refusals
        self._cap = max(2 * size_cap(mailbox.form.cap) + 64, 8192)  # a proof holds two frames
        self._outbox: dict[str, tuple[int, bytes]] = {}
        self._proof: bytes | None = None
        self.proved: set[str] = set()  # who has shown a proof
        self._asked: set[str] = set()  # who was asked what its job says
        self.recalled: dict[str, Recalled] = {}
        self.here: Here | None = None  # this process, among copies of it
        self._askers = Askers(site.neighbours)
        self.answered: set[str] = set()  # who was told which of its frames this site knows
        self.vouches: Callable[[str], bool] = lambda name: True  # whether nothing of `name` was forgotten
        self.where: Callable[[], bytes] = bytes  # what to answer to whom asks where this site is
        self.told: Callable[[bytes], None] = lambda data: None  # what a neighbour answered
        self.early: Mailbox | None = None  # for what is said where a run ends before its last round
        self._lock = threading.Lock()
        self.links = 0  # how many links came up so far
        self._known = {*site.neighbours, *([site.job.relay.name] if site.job.relay else [])}
        self._crowd_left = False
        take_descriptors()
        _reach_relay(site)
        self._zenoh: Any = None
        self._join()
        refusals.connected = self.connected
        self._door = _door_of(site)
        self._meter = Meter(refusals, self._ends, self._door, self._note_crowd)
        self._declared: list[Any] = []

    def listen(self) -> None:
        """Hear and answer from now on.

        Not before the mailbox knows again what this site said and heard: until then it would tell a neighbour
        that nothing of it is known here, and a neighbour whose state was put back would believe that.
        """
        self._declare()

    def _join(self) -> None:
        site = self._site
        try:
            self._zenoh = zenoh.open(zenoh.Config.from_json5(json.dumps(site_config(site))))
        except zenoh.ZError as error:
            raise SiteError(f"cannot open the network at {site.listens()}: {_plain(error)}.") from error

    def _declare(self) -> None:
        names = self._site.neighbours
        self._declared = [
            self._zenoh.declare_queryable(f"taciturn/{self._site.name}/**", self._answer),
            *(self._zenoh.declare_subscriber(f"taciturn/{name}/**", self._heard) for name in names),
            self._zenoh.info.declare_link_events_listener(self._linked, history=True),
        ]

    # -- what the site does -----------------------------------------------------------------------------

    def publish(self, t: int, frame: bytes, *, owner: str | None = None, attempt: int = 0) -> None:
        """Send a frame of this site, or pass on that of `owner`, and keep it for those who will ask."""
        self.keep(t, frame, owner=owner, attempt=attempt)
        key = key_of(self._site.name, t, owner, attempt=attempt)
        self._call(lambda: self._zenoh.put(key, frame, congestion_control=_BLOCK, express=True))

    def keep(self, t: int, frame: bytes, *, owner: str | None = None, attempt: int | None = None) -> None:
        """Have a frame ready for those who will ask, without sending it."""
        attempt = self._mailbox.attempt if attempt is None else attempt
        with self._lock:
            self._outbox[key_of(self._site.name, t, owner, attempt=attempt)] = t, frame

    def forget(self, t: int) -> None:
        """Nobody can still need a frame from before round t, but for 'hello'."""
        with self._lock:
            for key in [key for key, (kept, _) in self._outbox.items() if 0 < kept < t]:
                del self._outbox[key]

    def show_proof(self, first: bytes, second: bytes) -> None:
        """Send two frames that contradict each other; from now on they are the answer to every question."""
        self._proof = proof = pack_proof(first, second)
        key = key_of_proof(self._site.name)
        self._call(lambda: self._zenoh.put(key, proof, congestion_control=_BLOCK, express=True))

    def ask(self, name: str, t: int, owner: str | None = None, *, attempt: int | None = None) -> None:
        """Pull a frame of round t from a neighbour; it comes to the mailbox like any other."""
        attempt = self._mailbox.attempt if attempt is None else attempt
        self._ask(key_of(name, t, owner, attempt=attempt))

    def ask_recall(self, name: str) -> None:
        """Ask a neighbour for the newest frame of this site; the answer comes to what `recalled` is now."""
        into = self.recalled

        def replied(reply: Any) -> None:
            if reply.ok is not None:
                self._sort(str(reply.ok.key_expr), reply.ok.payload, asked=True, recalled=into)

        word = None if self.here is None else self.here.word()
        self._ask(key_of_recall(name, self._site.name), word, replied)

    def ask_where(self) -> None:
        """Ask the neighbours where they are, and whom they wait for; the answers go to `told`."""
        for name in self._site.neighbours:
            self._ask(key_of_where(name))

    def reason(self, name: str) -> str:
        """Why nothing of `name` is accepted, if that will not pass by waiting."""
        return self.refusals.reason(name)

    def connected(self) -> set[str]:
        """The names in the certificates at the other ends of the open links."""
        return set(self._ends().values())

    def reopen_after_crowd(self) -> None:
        """Join the network anew where a crowd of callers has left and a neighbour cannot get in."""
        if not self._crowd_left:
            return
        self._crowd_left = False
        if set(self._site.neighbours) <= self.connected():
            return
        log.warning("a crowd of callers has left this site's port: opening it anew for the neighbours")
        self._zenoh.close()
        for attempt in range(REOPENED, -1, -1):
            try:
                self._join()
                break
            except SiteError:
                if not attempt:
                    raise
                time.sleep(0.2)
        self._declare()

    def close(self) -> None:
        """Leave the network."""
        self._meter.stop()
        if not self._zenoh.is_closed():
            self._zenoh.close()
        if self._door is not None:
            self._door.close()

    # -- on Zenoh's threads -----------------------------------------------------------------------------

    def _heard(self, sample: Any) -> None:
        self._sort(str(sample.key_expr), sample.payload, asked=False)

    def _replied(self, reply: Any) -> None:
        if reply.ok is not None:
            self._sort(str(reply.ok.key_expr), reply.ok.payload, asked=True)

    def _sort(
        self, key: str, payload: Any, *, asked: bool, recalled: dict[str, Recalled] | None = None
    ) -> None:
        """Hand a payload to the mailbox; a size that no frame has is not even copied."""
        framed = _FRAME.fullmatch(key)
        other = None if framed else _OTHER.fullmatch(key)
        sender = (framed or other or re.match(r"taciturn/([^/]*)", key) or [key, key])[1]
        self._meter.count(sender, len(payload))
        if len(payload) > self._cap:
            self.refusals.refuse(sender, "size", f"{len(payload)} bytes, above the cap of {self._cap}")
            return
        data = payload.to_bytes()
        if (framed or other) and data.startswith(PROOF):
            self.proved.add(sender)
            self._mailbox.offer_proof(sender, *unpack_proof(data))
        elif framed:
            attempt, t, owner = int(framed[2]), int(framed[3]), framed[4]
            early = self.early if self.early and self.early.attempt == attempt else None
            (early or self._mailbox).offer(sender, t, data, owner=owner, attempt=attempt, asked=asked)
            if early is not None:
                self._mailbox.wake()
            if sender not in self._asked and (sender, "job") in self.refusals.counts():
                self._asked.add(sender)
                self._ask(key_of_job(sender))
        elif other and other[4] and recalled is not None:
            self._sort_recalled(sender, data, recalled)
        elif other and other[6] and asked:
            self.told(data)
        elif other and other[3] and asked:
            self.refusals.explain(sender, "job", difference(self._site.job, data))
        else:
            self.refusals.refuse(sender, "key", "a message under a key that is not of this protocol")

    def _sort_recalled(self, sender: str, data: bytes, into: dict[str, Recalled]) -> None:
        if sender not in self._site.neighbours or len(data) < _POSITION.size:
            return
        attempt, t, marks = _POSITION.unpack_from(data)
        if attempt == CHECK:
            return
        rest = data[_POSITION.size :]
        if marks & SHOWS and len(rest) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(rest)[0]
            if self.here is not None and self.here.shown(rest[_LENGTH.size : end]):
                self.ask_recall(sender)
            rest = rest[end:]
        into[sender] = Recalled(t, marks & (SHOWS - 1), rest, vouches=not marks & FORGETFUL)
        self._mailbox.wake()

    def _answer(self, query: Any) -> None:
        with query:
            key = str(query.key_expr)
            other = _OTHER.fullmatch(key)
            if self._proof is not None:
                query.reply(key, self._proof, express=True)
            elif other and other[4]:
                if self._mailbox.attempt == CHECK:  # a check knows nothing of the run, and says nothing of it
                    return
                query.reply(key, self._recall(other[5], query.payload), express=True)
                self.answered |= {other[5]} & set(self._site.neighbours)
            elif other and other[3]:
                query.reply(key, show_keys(self._site.job), express=True)
            elif other and other[6]:
                query.reply(key, self.where(), express=True)
            else:
                with self._lock:
                    _, frame = self._outbox.get(key, (0, None))
                if frame is not None:
                    query.reply(key, frame, express=True)

    def _recall(self, name: str, payload: Any) -> bytes:
        """What this site knows of `name`, which shows its word as it asks."""
        shown = b"" if payload is None else payload.to_bytes()
        processes, word = self._processes(name, shown)
        marks = min(SHOWS - 1, processes) | (FORGETFUL * (not self.vouches(name))) | (SHOWS * bool(word))
        position = _POSITION.pack(self._mailbox.attempt, self._mailbox.t, marks)
        copy = _LENGTH.pack(len(word)) + word if word else b""
        return position + copy + (self._mailbox.newest(name) or b"")

    def _linked(self, event: Any) -> None:
        """A link came up or went down: look who is there."""
        if event.kind != zenoh.SampleKind.PUT:
            return
        name = event.link.auth_identifier
        if name not in self._known:
            sender = str(name or f"a caller without a name at {event.link.dst}")
            self.refusals.refuse(sender, "stranger", "it is not a neighbour and may say nothing")
            return
        self.links += 1
        self._mailbox.wake()

    def _processes(self, name: str, shown: bytes) -> tuple[int, bytes]:
        """How many processes with the certificate of `name` are on the line; the word of another than asks.

        Behind a relay nobody is on a line; there those count that have asked of late.
        """
        asked, word = self._askers.note(name, shown)
        near = {str(link.zid) for link in self._zenoh.info.links() if link.auth_identifier == name}
        return len(near) or asked, word

    def _ends(self) -> dict[str, str]:
        """The name in the certificate at the far end of each open link."""
        try:
            links = [] if self._zenoh.is_closed() else self._zenoh.info.links()
        except zenoh.ZError:  # closed meanwhile
            links = []
        return {str(link.dst): str(link.auth_identifier) for link in links if link.auth_identifier}

    def _note_crowd(self) -> None:
        self._crowd_left = True
        self._mailbox.wake()

    # -- inside -----------------------------------------------------------------------------------------

    def _ask(
        self, key: str, payload: bytes | None = None, replied: Callable[[Any], None] | None = None
    ) -> None:
        heard = replied or self._replied
        self._call(lambda: self._zenoh.get(key, heard, payload=payload, timeout=_ASK_TIMEOUT))

    def _call(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except zenoh.ZError as error:
            raise SiteError(f"the network failed: {_plain(error)}.") from error

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _door_of(site: Site) -> Door | None:
    """The port that this site listens on, where that can be looked at."""
    listens = site.listens()
    if listens is None or site.outward or sys.platform != "linux":
        return None
    return Door(address(listens)[1], friends=len(site.neighbours) + 1)


def _reach_relay(site: Site) -> None:
    """Wait for the relay where all talk goes through it: Zenoh would wait for it without a word, for ever."""
    relay = site.job.relay
    if relay is None or not site.outward:
        return
    why: dict[str, str] = {}

    def missing() -> list[str]:
        reason = probe(site, relay.name, site.dials()[relay.name])
        why[relay.name] = reason or ""
        return [] if reason is None else [relay.name]

    waiting = Waiting(
        site.file.patience,
        lambda seconds: time.sleep(min(seconds, 1.0)),
        lambda: 0,
        lambda names, since: None,
        lambda name: f"{name}: {why[name]}",
    )
    waiting.need(missing, lambda names: None, "the relay")


def _plain(error: Exception) -> str:
    """The reason in an error of Zenoh, without the places in its source."""
    return re.sub(r" at /\S+", "", str(error)).strip().rstrip(".")
