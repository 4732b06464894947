"""Sites in one process, with a virtual clock, virtual disks and a virtual network, all from one seed.

The seed determines everything: two worlds with the same seed are equal to the last bit. No real time passes.
If a process is killed, its disk and its volatile memory remain. A power cut also clears the volatile memory.
In both cases, a write that was not synced may be lost.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from taciturn.sites.protocol.core import change
from taciturn.sites.protocol.envelopes import Content, Envelopes
from taciturn.sites.protocol.events import (
    Ask,
    ChargedRelease,
    Effect,
    Event,
    FinishAsked,
    Finished,
    Heard,
    Hold,
    Leave,
    Note,
    QuestionAsked,
    SendFrame,
    Started,
    Stop,
    Stored,
    StoreFailed,
    StoreRecords,
    Tick,
)
from taciturn.sites.protocol.frames import FrameRefused
from taciturn.sites.protocol.machine import SiteProtocol


class Scheduler:
    """A virtual clock. It runs actions in the order of time; at equal times, in the order of requests."""

    def __init__(self, seed: int) -> None:
        self.now, self.random = 0.0, random.Random(seed)
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, time: float, act: Callable[[], None]) -> None:
        """Schedule an action at a future time."""
        self._count += 1
        heapq.heappush(self._queue, (max(time, self.now), self._count, act))

    def after(self, delay: float, act: Callable[[], None]) -> None:
        self.at(self.now + delay, act)

    def run(self, until: float, done: Callable[[], bool] = lambda: False) -> None:
        """Let time pass until `until`, or until `done()` is true."""
        while self._queue and not done():
            time, _, act = self._queue[0]
            if time > until:
                break
            heapq.heappop(self._queue)
            self.now = time
            act()
        else:
            return
        self.now = until


@dataclass
class VirtualDisk:
    """A site's disk, its volatile memory, and the account of its table.

    full : nothing more can be stored.   pays : whether the account pays for the run.
    account : 1 once the run is charged.   account_mark : in a run without masks, the last charged round.
    """

    records: dict[str, bytes] = field(default_factory=dict)
    ledger: list[ChargedRelease] = field(default_factory=list)
    volatile: dict[str, bytes] = field(default_factory=dict)
    account: int = 0
    account_mark: int = 0
    pays: bool = True
    full: bool = False

    def copy(self) -> VirtualDisk:
        """A backup."""
        return replace(
            self, records=dict(self.records), ledger=list(self.ledger), volatile=dict(self.volatile)
        )

    def write(self, effect: StoreRecords) -> None:
        """Write one transaction, completely or not at all."""
        change(self.records, effect.records)
        self.ledger += effect.releases
        for release in effect.releases:
            self.account = 1
            if release.sum is None:
                self.account_mark = max(self.account_mark, release.charge.t)


@dataclass
class MemorySite:
    """One simulated process and its machine. Every start and every end of the process increases `life`."""

    number: int
    make: Callable[[MemorySite], SiteProtocol]
    disk: VirtualDisk = field(default_factory=VirtualDisk)
    protocol: SiteProtocol | None = None
    envelopes: Envelopes | None = None
    life: int = 0
    writing: list[StoreRecords] = field(default_factory=list)
    synced: float = 0.0  # when the last requested transaction is on disk
    finished: Finished | None = None
    stops: list[Stop] = field(default_factory=list)
    away: bool = False

    @property
    def running(self) -> bool:
        return self.protocol is not None


def exchange_key(asker: Envelopes, other: Envelopes) -> None:
    """The asker requests the key of another process, which sends it if it trusts the asker's certificate."""
    try:
        answer = other.answer(other.read(asker.request, asker.own))
        asker.learn(asker.read(answer or b"", other.own), other.own)
    except FrameRefused:
        return


class Thief:
    """A process with the revoked key of a site. It receives everything that is sent to that site.

    read : called with the number of each site that sent an envelope which the thief can open.
    """

    def __init__(self, envelopes: Envelopes, read: Callable[[int], None]) -> None:
        self.envelopes, self.read = envelopes, read

    def hear(self, sealed: bytes, by: Envelopes) -> None:
        """Try to open an envelope."""
        if _opens(self.envelopes, sealed, by):
            self.read(by.own)


class MemoryNetwork:
    """All sites of one run and their links, with hooks for faults.

    delay : returns how long each copy of a frame takes from one site to another; empty if the frame is lost.
    watch : called with every frame that leaves a site, before a fault can change the frame.
    twist : returns the frames that are sent in place of a frame; only a lying site changes frames.
    finishing : for each site that ends the run early, by number: the sites that it leaves out.
    twins, thieves : for each site, by number: its copies, and processes with its revoked key.

    A process that has envelopes encrypts with them. It requests a key when it cannot open an envelope.
    """

    def __init__(
        self, scheduler: Scheduler, sites: list[MemorySite], links: tuple[tuple[int, ...], ...]
    ) -> None:
        self.scheduler, self.sites, self.links = scheduler, sites, links
        self.delay: Callable[[int, int], list[float]] = lambda one, other: [0.01]
        self.watch: Callable[[MemorySite, bytes], None] = lambda site, data: None
        self.twist: Callable[[MemorySite, bytes, int], list[bytes]] = lambda site, data, to: [data]
        self.noted: Callable[[MemorySite, Effect], None] = lambda site, effect: None
        self.twins: dict[int, list[MemorySite]] = {}
        self.thieves: dict[int, list[Thief]] = {}
        self.finishing: dict[int, frozenset[int]] = {}
        self.fsync: Callable[[], float] = lambda: 0.002

    # -- processes --------------------------------------------------------------------------------------

    def start(self, site: MemorySite) -> None:
        """Start the process of a site from its disk and its volatile memory."""
        if site.running or site.away:
            return
        site.life += 1
        site.writing = []
        site.protocol = site.make(site)
        self.tell(site, Started())
        if site.number in self.finishing and site is self.sites[site.number]:
            self.tell(site, FinishAsked(self.finishing[site.number]))

    def kill(self, site: MemorySite, *, power: bool = False) -> None:
        """Kill the process; with `power`, cut the power of its machine, which clears the volatile memory.

        An unfinished transaction is then either on disk or lost, at random.
        """
        site.protocol = None
        site.life += 1
        for effect in site.writing[:1]:
            if not site.disk.full and self.scheduler.random.random() < (0.3 if power else 0.5):
                site.disk.write(effect)
        site.writing = []
        if power:
            site.disk.volatile.clear()

    # -- events and effects -----------------------------------------------------------------------------

    def tell(self, site: MemorySite, event: Event) -> None:
        """Pass an event to a running site, and carry out the effects that it requests."""
        if site.protocol is None:
            return
        entropy = self.scheduler.random.getrandbits(256).to_bytes(32, "little")
        effects = site.protocol.handle(event, self.scheduler.now, entropy)
        if isinstance(event, Started | Tick):
            self._later(site.protocol.setup.tick, site, Tick())
        for effect in effects:
            self.noted(site, effect)
            self._carry_out(site, effect)
            if site.protocol is None:
                return

    def _later(self, delay: float, site: MemorySite, event: Event) -> None:
        """Schedule an event for this process; a restarted process does not get it."""
        life = site.life
        self.scheduler.after(delay, lambda: self.tell(site, event) if site.life == life else None)

    def _carry_out(self, site: MemorySite, effect: Effect) -> None:
        match effect:
            case Ask(to, question):
                self._deliver(site, to, Content.QUESTION, question)
            case SendFrame(data, to):
                self._send(site, data, to or self.links[site.number])
            case StoreRecords():
                self._store(site, effect)
            case Hold(entries):
                change(site.disk.volatile, entries)
            case Stop():
                site.stops.append(effect)
                site.protocol = None
                site.life += 1
            case Finished():
                site.finished = effect
            case Leave():
                site.protocol = None
                site.life += 1
            case Note():
                pass

    def _store(self, site: MemorySite, effect: StoreRecords) -> None:
        if effect.releases and not site.disk.account and not site.disk.pays:
            self._later(0.001, site, StoreFailed(effect.number, "the account does not pay.", budget=True))
            return
        if site.disk.full:
            self._later(0.001, site, StoreFailed(effect.number, "the disk is full."))
            return
        site.writing.append(effect)
        life = site.life

        def synced() -> None:
            if site.life == life:
                site.writing.remove(effect)
                site.disk.write(effect)
                self.tell(site, Stored(effect.number))

        site.synced = max(site.synced, self.scheduler.now + self.fsync())  # transactions keep their order
        self.scheduler.at(site.synced, synced)

    def _send(self, site: MemorySite, data: bytes, to: tuple[int, ...]) -> None:
        self.watch(site, data)
        for other in to:
            for twisted in self.twist(site, data, other):
                self._deliver(site, other, Content.FRAME, twisted)

    def _deliver(self, site: MemorySite, other: int, content: Content, data: bytes) -> None:
        by = site.envelopes
        event = QuestionAsked(data, site.number) if content == Content.QUESTION else Heard(data, site.number)
        sealed = b"" if by is None else by.close(content, data)
        for thief in self.thieves.get(other, ()) if by else ():
            thief.hear(sealed, by)

        def arrive(target: MemorySite) -> None:
            if by is None or _opens(target.envelopes, sealed, by):
                self.tell(target, event)

        for target in (self.sites[other], *self.twins.get(other, ())):
            for delay in self.delay(site.number, other):
                self.scheduler.after(delay, lambda target=target: arrive(target))  # type: ignore[misc]


def _opens(mine: Envelopes | None, sealed: bytes, by: Envelopes) -> bool:
    """Whether a process can open an envelope; if it lacks the right key, it requests the key."""
    if mine is None:
        return False
    if mine.open(sealed, by.own) is None:
        exchange_key(mine, by)
    return mine.open(sealed, by.own) is not None
