"""The protocol over Zenoh: mutual TLS between named neighbours. No other file sends or receives frames.

    taciturn/NAME/all           what the site NAME sends to all its neighbours
    taciturn/NAME/to/OTHER      what the site NAME sends only to its neighbour OTHER

The access rules of `wire/config.py` let each neighbour send under its own name only. A frame is a signed
message of the protocol; a question asks for frames. Both are sent in an envelope, which is encrypted with a
key of the sender, the sending key. Only the requests for sending keys, and the answers, have no envelope.
Zenoh silently loses a message that is sent before a link is up. So `ZenohLinks` notifies the site when a
neighbour's sending key arrives, and the site then asks for the frames that it lacks.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from ...core.errors import MissingExtra, NeighbourFailed, SiteError
from ..files.difference import difference, show_keys
from ..files.site import Site
from ..protocol.envelopes import MAGIC, OVERHEAD, Content, Envelopes
from ..protocol.events import Event, Heard, QuestionAsked, Tick
from ..protocol.frames import FrameRefused
from ..wire.config import site_config
from ..wire.meter import Door, Meter, take_descriptors
from ..wire.probe import address, probe
from ..wire.refusals import Refusals
from ..wire.trust import Identity, Trust

try:
    import zenoh
except ImportError as error:
    raise MissingExtra("eclipse-zenoh", "zenoh") from error

log = logging.getLogger("taciturn.site")
_BLOCK, _DROP = zenoh.CongestionControl.BLOCK, zenoh.CongestionControl.DROP
_REQUESTS = 0.2  # the least time in seconds between two requests for the sending key of one neighbour
REOPENED = 20  # attempts to reopen a port that this site closed a moment ago
SAY = 10.0  # seconds without the relay after which a warning is logged


class ZenohLinks:
    """The links of one site. Use it in a `with` block.

    identity, trust : the key with which this site signs, and the signing keys of others that it accepts.
    tell : a function that is called with every event, on any thread.
    largest : bytes of the largest frame.
    told : a function that is called with a neighbour's report about waiting sites, on a thread of Zenoh.
    met : the neighbours with the same job whose sending keys have arrived.
    answered : the neighbours that have requested this site's sending key and got an answer.
    """

    def __init__(
        self,
        site: Site,
        identity: Identity,
        trust: Trust,
        refusals: Refusals,
        tell: Callable[[Event], None],
        largest: int,
        told: Callable[[bytes], None] = lambda data: None,
    ) -> None:
        self._site, self.refusals, self._tell, self._largest = site, refusals, tell, largest
        self._told, self._crowd_left = told, threading.Event()
        names = site.job.names
        self._numbers = {name: number for number, name in enumerate(names)}
        self._all = zenoh.KeyExpr(f"taciturn/{site.name}/all")
        self._one = {self._numbers[name]: zenoh.KeyExpr(f"taciturn/{site.name}/to/{name}") for name in names}
        self._envelopes = Envelopes(
            site.job.hash,
            site.number,
            identity.seal,
            lambda frame, via: trust.check(frame, names[via]),
            os.urandom,
            show_keys(site.job),
        )
        self.met, self.answered = set[int](), set[int]()
        self._requested: dict[int, float] = {}
        self._lock = threading.Lock()  # one neighbour's thread at a time exchanges keys
        self._known = {*site.neighbours, *([site.job.relay.name] if site.job.relay else [])}
        self._declared: list[Any] = []
        take_descriptors()
        _reach_relay(site)
        self._session: Any = None
        self._join()
        refusals.connected = self.connected
        self._door = _door_of(site)
        self._meter = Meter(refusals, self._ends, self._door, self._crowd_left.set)

    def _join(self) -> None:
        try:
            self._session = zenoh.open(zenoh.Config.from_json5(json.dumps(site_config(self._site))))
        except zenoh.ZError as error:
            place = self._site.listens() or ", ".join(self._site.dials().values())
            raise SiteError(f"cannot open the network at {place}: {_plain(error)}.") from error

    def listen(self) -> None:
        """Start to receive the messages of the neighbours."""
        session, own = self._session, self._site.name
        self._declared = [
            session.declare_subscriber(f"taciturn/{name}/{place}", self._hears(name))
            for name in self._site.neighbours
            for place in ("all", f"*/{own}", f"*/{name}")  # the last pattern is for older releases
        ]
        self._declared.append(session.info.declare_link_events_listener(self._linked, history=True))

    def send(self, data: bytes, to: tuple[int, ...] = ()) -> None:
        """Send a frame to the neighbours `to`, or to all neighbours if `to` is empty."""
        self._put(self._envelopes.close(Content.FRAME, data), to)

    def ask(self, to: int, question: bytes) -> None:
        """Ask one neighbour; the answer comes as frames."""
        self._put(self._envelopes.close(Content.QUESTION, question), (to,))

    def say_where(self, data: bytes) -> None:
        """Send the neighbours this site's round and the sites that it waits for."""
        self._put(self._envelopes.close(Content.WHEREABOUTS, data))

    def connected(self) -> set[str]:
        """The names in the certificates at the far ends of the open links."""
        return set(self._ends().values())

    def look(self) -> None:
        """Request missing sending keys. Rejoin if many clients have left and a neighbour is missing."""
        for name in self._site.neighbours:
            if self._numbers[name] not in self._envelopes.known:
                self._request(self._numbers[name])
        if not self._crowd_left.is_set():
            return
        self._crowd_left.clear()
        if set(self._site.neighbours) <= self.connected():
            return
        log.warning("many clients have left this site's port: it is opened again for neighbours")
        self._rejoin()

    def renew(self, site: Site) -> None:
        """Replace all links and sending keys, after a change of the revoked certificates in site.toml."""
        self._site = site
        with self._lock:
            self._envelopes.renew()
            self.met.clear()
            self.answered.clear()
        self._rejoin()

    def _rejoin(self) -> None:
        self._session.close()
        for attempt in range(REOPENED, -1, -1):
            try:
                self._join()
                break
            except SiteError:
                if not attempt:
                    raise
                time.sleep(0.2)
        self.listen()

    # -- on Zenoh's threads -----------------------------------------------------------------------------

    def _hears(self, sender: str) -> Callable[[Any], None]:
        """The callback for one neighbour's messages. It does not copy messages larger than any frame."""
        via, largest = self._numbers[sender], self._largest + OVERHEAD

        def take(sample: Any) -> None:
            payload = sample.payload
            size = len(payload)
            self._meter.count(sender, size)
            try:
                if size > largest:
                    raise FrameRefused("size", f"its message has {size} bytes; at most {largest} are allowed")
                data = payload.to_bytes()
                if data.startswith(MAGIC):
                    self._open(data, via)
                else:
                    with self._lock:
                        self._exchange(data, via)
            except FrameRefused as error:
                self.refusals.refuse(sender, error.kind, str(error))

        return take

    def _open(self, data: bytes, via: int) -> None:
        """Pass on the content of an envelope; if its key is not known, request the key."""
        opened = self._envelopes.open(data, via)
        if opened is None:
            self._request(via)
            return
        content, inside = opened
        if content == Content.FRAME:
            self._tell(Heard(inside, via))
        elif content == Content.QUESTION:
            self._tell(QuestionAsked(inside, via))
        else:
            self._told(inside)

    def _exchange(self, data: bytes, via: int) -> None:
        """Give a neighbour the key that it requests, or take the key in its answer."""
        frame = self._envelopes.read(data, via)
        if (answer := self._envelopes.answer(frame)) is not None:
            self.answered.add(via)
            self._offer(answer, (via,))
            if via not in self._envelopes.known:
                self._request(via)
            return
        more = self._envelopes.learn(frame, via)
        if more is None:
            return
        name = self._site.job.names[via]
        if frame.job == self._site.job.hash:
            self.met.add(via)
            self.refusals.accept(name)
        else:
            self.refusals.refuse(name, "job", "it has a different job")
            self.refusals.explain(name, "job", difference(self._site.job, more))
        self._tell(Tick())

    def _request(self, via: int) -> None:
        now = time.monotonic()
        if now - self._requested.get(via, 0.0) >= _REQUESTS:
            self._requested[via] = now
            self._offer(self._envelopes.request, (via,))

    def _linked(self, event: Any) -> None:
        """Handle a new link: request the key of a neighbour, which may have changed; refuse other parties."""
        if event.kind != zenoh.SampleKind.PUT:
            return
        name = event.link.auth_identifier
        if name in self._known:
            self._offer(self._envelopes.request)
            return
        sender = str(name or f"an unauthenticated client at {event.link.dst}")
        self.refusals.refuse(sender, "stranger", "it is not a neighbour, so its messages are ignored")

    def _ends(self) -> dict[str, str]:
        """The name in the certificate at the far end of each open link."""
        try:
            links = [] if self._session.is_closed() else self._session.info.links()
        except zenoh.ZError:  # the session was closed in the meantime
            links = []
        return {str(link.dst): str(link.auth_identifier) for link in links if link.auth_identifier}

    # -- sending and closing ----------------------------------------------------------------------------

    def _put(self, data: bytes, to: tuple[int, ...] = (), way: Any = _BLOCK) -> None:
        for key in [self._one[j] for j in to] or [self._all]:
            try:
                self._session.put(key, data, congestion_control=way, express=True)
            except zenoh.ZError as error:
                raise SiteError(f"the network failed: {_plain(error)}.") from error

    def _offer(self, data: bytes, to: tuple[int, ...] = ()) -> None:
        """Send on a thread of Zenoh, without blocking and without errors. Lost data are requested again."""
        with suppress(SiteError):
            self._put(data, to, _DROP)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._meter.stop()
        if not self._session.is_closed():
            self._session.close()
        if self._door is not None:
            self._door.close()


def _door_of(site: Site) -> Door | None:
    """The port that this site listens on; None if there is none, or if this system cannot inspect it."""
    listens = site.listens()
    if listens is None or site.outward or sys.platform != "linux":
        return None
    return Door(address(listens)[1], friends=len(site.neighbours) + 1)


def _reach_relay(site: Site) -> None:
    """If this site uses only the relay, wait until the relay answers, for at most `patience` seconds."""
    relay = site.job.relay
    if relay is None or not site.outward:
        return
    begun, said = time.monotonic(), False
    while (why := probe(site, relay.name, site.dials()[relay.name])) is not None:
        waited = time.monotonic() - begun
        if waited >= site.file.patience:
            raise NeighbourFailed(
                f"the relay {relay.name} is silent: {why}; this site stopped after {site.file.patience:g} s. "
                "Everything is stored: run the same command to continue."
            )
        if waited >= min(SAY, site.file.patience / 2) and not said:
            log.warning("waiting for the relay %s: %s", relay.name, why)
            said = True
        time.sleep(min(1.0, site.file.patience / 4))


def _plain(error: Exception) -> str:
    """The reason in an error of Zenoh, without source locations."""
    return re.sub(r" at /\S+", "", str(error)).strip().rstrip(".")
