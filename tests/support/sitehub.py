"""Real site drivers in threads of one process: real files, keys and accounts; the network is a few queues."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from taciturn.core.errors import TaciturnError
from taciturn.sites.files.difference import difference, show_keys
from taciturn.sites.files.site import Site, load_site
from taciturn.sites.protocol.events import Event, Heard, QuestionAsked, Tick
from taciturn.sites.protocol.frames import NOTHING, SIGNATURE, Kind, SignedFrame, Slot, decode, encode
from taciturn.sites.rounds import driver as driver_module
from taciturn.sites.rounds.driver import run_site
from taciturn.sites.rounds.ending import SiteResult
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.results import verify_statement
from taciturn.sites.wire.refusals import Refusals
from taciturn.sites.wire.trust import Identity, Trust, load_trust


class Killed(BaseException):
    """A thread must end where it is."""


class _Bomb(QuestionAsked):
    """An event that ends the thread which looks at it."""

    def __getattribute__(self, name: str) -> Any:
        if name == "question":
            raise Killed
        return super().__getattribute__(name)


class Hub:
    """Who is on the network, and everything that was ever sent: (sender, data).

    change : what becomes of a frame on its way from one site to another; None loses it.
    """

    def __init__(self) -> None:
        self.on: dict[str, HubLinks] = {}
        self.sent: list[tuple[str, bytes]] = []
        self.change: Callable[[str, str, bytes], bytes | None] = lambda sender, to, data: data

    def frames(self, number: int, kind: int) -> list[SignedFrame]:
        """The frames of a kind that a site signed, each once, whichever site passed them on."""
        found = [decode(data, largest=10**8) for _, data in self.sent]
        return list({f.digest: f for f in found if (f.sender, f.kind) == (number, kind)}.values())

    def kill(self, name: str) -> None:
        """End the thread of a site at its next event; what is on disk stays as it is."""
        self.on[name].tell(_Bomb(b"", 0))


class HubLinks:
    """What `ZenohLinks` is to a driver, over queues."""

    hub: Hub

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
        self.site, self.refusals, self.tell, self.told = site, refusals, tell, told
        self.names = site.job.names
        refusals.connected = self.connected

    def listen(self) -> None:
        self.hub.on[self.site.name] = self
        for other in self._near():
            other.tell(Tick())
            self._compare(other)
            other._compare(self)

    def _near(self, to: Iterable[int] = ()) -> list[HubLinks]:
        names = [self.names[j] for j in to] or self.site.neighbours
        return [self.hub.on[name] for name in names if name in self.hub.on]

    def send(self, data: bytes, to: tuple[int, ...] = ()) -> None:
        self.hub.sent.append((self.site.name, data))
        for other in self._near(to):
            changed = self.hub.change(self.site.name, other.site.name, data)
            if changed is not None:
                other.tell(Heard(changed, other.names.index(self.site.name)))

    def ask(self, to: int, question: bytes) -> None:
        slot = Slot(Kind.KEY, 0, 0, self.site.number)
        shown = encode(self.site.job.hash, slot, NOTHING, question) + bytes(
            SIGNATURE
        )  # in the form of a frame
        for other in self._near([to]):
            if self.hub.change(self.site.name, other.site.name, shown) is not None:
                other.tell(QuestionAsked(question, other.names.index(self.site.name)))

    def say_where(self, data: bytes) -> None:
        for other in self._near():
            other.told(data)

    def _compare(self, other: HubLinks) -> None:
        """What the exchange of keys says if the two jobs differ."""
        if other.site.job.hash != self.site.job.hash:
            name = other.site.name
            self.refusals.refuse(name, "job", "it has a different job")
            self.refusals.explain(name, "job", difference(self.site.job, show_keys(other.site.job)))

    def connected(self) -> set[str]:
        return {links.site.name for links in self._near()}

    def look(self) -> None:
        """There is no port, and there are no envelopes."""

    def renew(self, site: Site) -> None:
        """There are no keys to draw again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hub.on.pop(self.site.name, None)


_READING = threading.Lock()
"""Held while a site reads its rows: Python 3.11 may fail where two threads parse the head of a .npy file."""


class SiteThread(threading.Thread):
    """One site; `outcome` is its result, or the error that it ended with."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(daemon=True)
        self.path, self.options = path, options
        self.outcome: SiteResult | BaseException | None = None

    def run(self) -> None:
        try:
            with _READING:
                ready = make_ready(load_site(self.path))
            self.outcome = run_site(ready, **self.options)
        except (TaciturnError, Killed) as error:
            self.outcome = error

    def wait(self, seconds: float = 120.0) -> SiteResult | BaseException:
        self.join(seconds)
        assert self.outcome is not None, f"{self.path.parent.name} did not end"
        return self.outcome

    @property
    def code(self) -> int:
        """The exit code that the command would have."""
        outcome = self.wait()
        return int(outcome.exit_code) if isinstance(outcome, TaciturnError) else 0


def use_hub(monkeypatch: Any) -> Hub:
    """From now on all drivers of this process meet in one hub."""
    hub = Hub()
    monkeypatch.setattr(driver_module, "ZenohLinks", type("Links", (HubLinks,), {"hub": hub}))
    return hub


def start(paths: Iterable[Path], **options: Any) -> list[SiteThread]:
    """Threads for these sites, started."""
    threads = [SiteThread(path, **options) for path in paths]
    for thread in threads:
        thread.start()
    return threads


def until(there: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end
        time.sleep(0.01)


def statement(path: Path, name: str = "statement.json") -> dict[str, Any]:
    """The verified facts of a file that a site has signed."""
    site = load_site(path)
    return verify_statement(site.state / name, load_trust(site.path(site.file.keys.authority)))
