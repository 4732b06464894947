"""The protocol over Zenoh: mutual TLS between named neighbours. No other file sends or receives anything.

    taciturn/NAME/all           a frame for all neighbours of NAME
    taciturn/NAME/to/OTHER      a frame for one of them
    taciturn/NAME/ask/OTHER     a question to one of them, signed like a frame
    taciturn/NAME/where         where NAME is and whom it waits for, for people
    taciturn/NAME/job           a query: the public keys of the job of NAME, where two jobs differ

The access rules of `wire/config.py` let each neighbour speak under its own name only. Frames and questions go
into one queue, which the thread of the site empties. A put before a link is up is lost silently, so the
site is notified of every new link, and asks again.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Callable
from typing import Any, Self

from ...core.errors import MissingExtra, NeighbourFailed, SiteError
from ..files.difference import difference, show_keys
from ..files.site import Site
from ..protocol.events import Event, Heard, QuestionAsked, Tick
from ..wire.config import site_config
from ..wire.meter import Door, Meter, take_descriptors
from ..wire.probe import address, probe
from ..wire.refusals import Refusals

try:
    import zenoh
except ImportError as error:
    raise MissingExtra("eclipse-zenoh", "zenoh") from error

log = logging.getLogger("taciturn.site")
_BLOCK = zenoh.CongestionControl.BLOCK
_KEY = re.compile(r"taciturn/([^/]+)/(all|to|ask|where)(?:/([^/]+))?")
_ASK_TIMEOUT = 5.0
REOPENED = 20  # times to try to open a port again that was ours a moment ago
SAY = 10.0  # seconds without the relay before it is worth a line


class ZenohLinks:
    """The links of one site. Use it in a `with` block.

    tell : takes every event; it must be safe to call from any thread.
    largest : bytes of the largest frame.
    told : called with a neighbour's report about waiting sites, on a thread of Zenoh.
    """

    def __init__(
        self,
        site: Site,
        refusals: Refusals,
        tell: Callable[[Event], None],
        largest: int,
        told: Callable[[bytes], None] = lambda data: None,
    ) -> None:
        self._site, self.refusals, self._tell, self._largest = site, refusals, tell, largest
        self._told, self._crowd_left, self._explained = told, False, set[str]()
        self._numbers = {name: number for number, name in enumerate(site.job.names)}
        self._known = {*site.neighbours, *([site.job.relay.name] if site.job.relay else [])}
        self._declared: list[Any] = []
        take_descriptors()
        _reach_relay(site)
        self._session: Any = None
        self._join()
        refusals.connected = self.connected
        self._door = _door_of(site)
        self._meter = Meter(refusals, self._ends, self._door, self._note_crowd)

    def _join(self) -> None:
        try:
            self._session = zenoh.open(zenoh.Config.from_json5(json.dumps(site_config(self._site))))
        except zenoh.ZError as error:
            raise SiteError(f"cannot open the network at {self._site.listens()}: {_plain(error)}.") from error

    def listen(self) -> None:
        """Start to receive from the neighbours."""
        session = self._session
        self._declared = [
            session.declare_queryable(f"taciturn/{self._site.name}/job", self._show_job),
            *(
                session.declare_subscriber(f"taciturn/{name}/**", self._heard)
                for name in self._site.neighbours
            ),
            session.info.declare_link_events_listener(self._linked, history=True),
        ]

    def send(self, data: bytes, to: tuple[int, ...] = ()) -> None:
        """Send a frame to some neighbours, or to all."""
        own, names = self._site.name, self._site.job.names
        for key in [f"taciturn/{own}/to/{names[j]}" for j in to] or [f"taciturn/{own}/all"]:
            self._put(key, data)

    def ask(self, to: int, question: bytes) -> None:
        """Ask one neighbour; the answer comes as frames."""
        self._put(f"taciturn/{self._site.name}/ask/{self._site.job.names[to]}", question)

    def say_where(self, data: bytes) -> None:
        """Send the neighbours this site's round and the sites that it waits for."""
        self._put(f"taciturn/{self._site.name}/where", data)

    def explain_job(self, name: str) -> None:
        """Ask a neighbour with another job once for the differences, and log them."""
        if name in self._explained:
            return
        self._explained.add(name)

        def replied(reply: Any) -> None:
            if reply.ok is not None and len(reply.ok.payload) <= max(self._largest, 2**16):
                shown = reply.ok.payload.to_bytes()
                self.refusals.explain(name, "job", difference(self._site.job, shown))

        self._call(lambda: self._session.get(f"taciturn/{name}/job", replied, timeout=_ASK_TIMEOUT))

    def connected(self) -> set[str]:
        """The names in the certificates at the other ends of the open links."""
        return set(self._ends().values())

    def reopen_after_crowd(self) -> None:
        """Reopen the network if many clients have disconnected and a neighbour cannot connect."""
        if not self._crowd_left:
            return
        self._crowd_left = False
        if set(self._site.neighbours) <= self.connected():
            return
        log.warning("many clients have disconnected from this site's port: reopening it for the neighbours")
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

    def _heard(self, sample: Any) -> None:
        """Queue a received message; one that is too large for a frame is not copied."""
        key = str(sample.key_expr)
        found, sender = _KEY.fullmatch(key), key.split("/")[1]
        self._meter.count(sender, len(sample.payload))
        if len(sample.payload) > self._largest:
            self.refusals.refuse(
                sender, "size", f"{len(sample.payload)} bytes, above the cap of {self._largest}"
            )
            return
        number, mine = self._numbers.get(sender), self._site.name
        data = sample.payload.to_bytes()
        if number is None or (found is not None and found[3] not in (None, mine)):
            return
        if found is None and not data.startswith(b"taciturn/"):  # else a frame, perhaps of another release
            self.refusals.refuse(sender, "key", "a message under a key that is not of this protocol")
        elif found is not None and found[2] == "where":
            self._told(data)
        elif found is not None and found[2] == "ask":
            self._tell(QuestionAsked(data, number))
        else:
            self._tell(Heard(data, number))

    def _show_job(self, query: Any) -> None:
        with query:
            query.reply(str(query.key_expr), show_keys(self._site.job), express=True)

    def _linked(self, event: Any) -> None:
        """Handle a link that came up or went down."""
        if event.kind != zenoh.SampleKind.PUT:
            return
        name = event.link.auth_identifier
        if name in self._known:
            self._tell(Tick())
            return
        sender = str(name or f"an unauthenticated client at {event.link.dst}")
        self.refusals.refuse(sender, "stranger", "it is not a neighbour, so its frames are ignored")

    def _ends(self) -> dict[str, str]:
        """The name in the certificate at the far end of each open link."""
        try:
            links = [] if self._session.is_closed() else self._session.info.links()
        except zenoh.ZError:  # closed meanwhile
            links = []
        return {str(link.dst): str(link.auth_identifier) for link in links if link.auth_identifier}

    def _note_crowd(self) -> None:
        self._crowd_left = True

    # -- inside -----------------------------------------------------------------------------------------

    def _put(self, key: str, data: bytes) -> None:
        self._call(lambda: self._session.put(key, data, congestion_control=_BLOCK, express=True))

    def _call(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except zenoh.ZError as error:
            raise SiteError(f"the network failed: {_plain(error)}.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._meter.stop()
        if not self._session.is_closed():
            self._session.close()
        if self._door is not None:
            self._door.close()


def _door_of(site: Site) -> Door | None:
    """The port that this site listens on, if it can be inspected."""
    listens = site.listens()
    if listens is None or site.outward or sys.platform != "linux":
        return None
    return Door(address(listens)[1], friends=len(site.neighbours) + 1)


def _reach_relay(site: Site) -> None:
    """Wait for the relay, if everything goes through it; Zenoh alone would wait silently, for ever."""
    relay = site.job.relay
    if relay is None or not site.outward:
        return
    begun, said = time.monotonic(), False
    while (why := probe(site, relay.name, site.dials()[relay.name])) is not None:
        waited = time.monotonic() - begun
        if waited >= site.file.patience:
            raise NeighbourFailed(
                f"the relay {relay.name} is silent: {why}; stopped after {site.file.patience:g} s. "
                "Everything is stored: run the same command to continue."
            )
        if waited >= min(SAY, site.file.patience / 2) and not said:
            log.warning("waiting for the relay %s: %s", relay.name, why)
            said = True
        time.sleep(min(1.0, site.file.patience / 4))


def _plain(error: Exception) -> str:
    """The reason in an error of Zenoh, without the places in its source."""
    return re.sub(r" at /\S+", "", str(error)).strip().rstrip(".")
