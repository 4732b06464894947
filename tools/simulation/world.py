"""One simulated run: its sites and their keys, their faults, and the end of the run."""

from __future__ import annotations

import datetime
import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from taciturn.methods.admm.attempt import _connected as connected
from taciturn.sites.files.keys import Authority, signing_request
from taciturn.sites.protocol.core import SiteSetup
from taciturn.sites.protocol.envelopes import Envelopes
from taciturn.sites.protocol.events import (
    Ask,
    Effect,
    Finished,
    Hold,
    Reason,
    SendFrame,
    Stop,
    StoreRecords,
)
from taciturn.sites.protocol.frames import FrameRefused, Kind, SignedFrame, decode
from taciturn.sites.protocol.machine import SiteProtocol
from taciturn.sites.wire.trust import Identity, Trust

from .memory import MemoryNetwork, MemorySite, Scheduler, Thief, VirtualDisk
from .program import penalty_site, walking_site

JOB = hashlib.sha256(b"a simulated job").digest()
PATIENCE, GATHER, TICK = 4.0, 0.4, 0.25
HEALED, LONGEST = 10.0, 60.0  # all temporary faults end at HEALED, and a run must end by LONGEST
LOST = (Reason.BUDGET,)  # a site that stops for one of these reasons never comes back
RESTARTS = (Reason.LEFT_ALONE, Reason.COPY, Reason.DISK)  # after these, the operator starts the site again
TRIES = 1  # how often an operator restarts a site, after all temporary faults are over
LARGEST = 2**16


@dataclass(frozen=True)
class Plan:
    """The facts of a run before it starts."""

    seed: int
    sites: int
    colluding: int
    rounds: int
    quorum: int
    links: tuple[tuple[int, ...], ...]
    liars: frozenset[int] = frozenset()
    method: str = "masked"


@lru_cache(maxsize=1)
def _authority() -> Authority:
    return Authority.throw_away(days=30)


@lru_cache(maxsize=128)
def identity(number: int, days: float = 30.0, key: int = 0) -> Identity:
    """A site's key and certificate, made once for all runs. A certificate with negative `days` has expired.

    key : 0 for the first key of a site; 1 for its new key after a revocation, whose certificate begins later.
    """
    name = f"s{number}"
    private = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(f"{name} {key}".encode()).digest())
    starts = datetime.timedelta(days=-1.0 + key / 2 if days > 0 else days - 5)
    certificate = _authority().sign(signing_request(private, name, ["127.0.0.1"]), days=days, starts=starts)
    return Identity(name, private, certificate.public_bytes(serialization.Encoding.DER))


@cache
def trust(revoked: frozenset[int] = frozenset()) -> Trust:
    """The trust of a site that has learnt of the revocation of these sites' first keys."""
    keys = [identity(number).key.public_key() for number in sorted(revoked)]
    return Trust([_authority().certificate], [_fingerprint(key) for key in keys])


def _fingerprint(key: Ed25519PublicKey) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).hexdigest()


_verified: dict[tuple[bytes, bytes], bool] = {}
_refused: dict[int, dict[bytes, str]] = {}  # id of a trust -> the certificates that it refuses


def check_signature(trust: Trust, frame: SignedFrame, name: str, at: datetime.datetime) -> None:
    """Like `Trust.check`, but verify the signature of the same bytes only once for all simulated sites."""
    refused = _refused.setdefault(id(trust), {})
    if frame.certificate in refused:
        raise FrameRefused("certificate", refused[frame.certificate])
    try:
        key = trust.key_of(frame.certificate, name, at)
    except FrameRefused as error:
        if "revoked" in str(error):
            refused[frame.certificate] = str(error)
        raise
    known = frame.digest, frame.signature
    if known not in _verified:
        if len(_verified) > 50_000:
            _verified.clear()
        try:
            key.verify(frame.signature, frame.signed)
            _verified[known] = True
        except Exception:
            _verified[known] = False
    if not _verified[known]:
        raise FrameRefused("signature", f"it was not signed by {name}")


@dataclass
class World:
    """The state of a simulated run."""

    plan: Plan
    trace: list[str] | None = None
    random: random.Random = field(init=False)
    network: MemoryNetwork = field(init=False)
    scheduler: Scheduler = field(init=False)
    clock: dict[int, float] = field(default_factory=dict)
    revoked: dict[int, frozenset[int]] = field(default_factory=dict)  # site -> the revocations that it knows
    rekeyed: set[int] = field(default_factory=set)
    sealed: bool = False  # whether frames travel in envelopes: in runs with revoked or expired keys
    read: set[tuple[int, int]] = field(default_factory=set)  # (site, thief): a revoked thief read its frames
    expired: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    rolled_back: dict[int, int] = field(default_factory=dict)  # site -> its `life` before the rollback
    restored: set[int] = field(default_factory=set)  # sites whose account was rolled back too
    imaged: set[int] = field(default_factory=set)  # sites whose volatile memory was rolled back too
    happened: list[str] = field(default_factory=list)
    backups: dict[int, VirtualDisk] = field(default_factory=dict)
    cuts: list[tuple[set[int], bool]] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)  # sites whose key was revoked and not replaced
    copied: set[int] = field(default_factory=set)
    tries: dict[int, int] = field(default_factory=dict)
    healed: bool = False

    def __post_init__(self) -> None:
        self.random = random.Random(f"faults {self.plan.seed}")
        self.scheduler = Scheduler(self.plan.seed)
        sites = [MemorySite(i, self._make) for i in range(self.plan.sites)]
        self.network = MemoryNetwork(self.scheduler, sites, self.plan.links)
        self.network.noted = self._noted
        self._began = datetime.datetime.now(datetime.UTC)

    @property
    def sites(self) -> list[MemorySite]:
        return self.network.sites

    def _make(self, site: MemorySite) -> SiteProtocol:
        plan, number = self.plan, site.number
        if self.sealed:
            site.envelopes = self._envelopes(number, f"{site.life} {id_of(site)}")
        source = random.Random(f"noise {plan.seed} {number} {site.life} {id_of(site)}")
        method = self.method(number, source)
        setup = SiteSetup(
            job=JOB,
            names=tuple(f"s{i}" for i in range(plan.sites)),
            own=number,
            links=plan.links,
            quorum=plan.quorum,
            patience=PATIENCE,
            method=method,
            seal=lambda content: self.identity(number).seal(content),
            believe=lambda frame: self._believe(number, frame),
            largest=LARGEST,
            mark=site.disk.account_mark,
            paid=bool(site.disk.account),
            gather=GATHER,
            tick=TICK,
        )
        return SiteProtocol(setup, site.disk.records, site.disk.volatile)

    def method(self, number: int, source: random.Random) -> Any:
        """The computation of one site."""
        plan = self.plan
        if plan.method == "penalty":
            return penalty_site(number, plan.links, plan.rounds, source)
        return walking_site(number, plan.sites, plan.colluding, plan.rounds, source)

    def _believe(self, number: int, frame: SignedFrame, by: int | None = None) -> None:
        """Raise unless the frame's sender, or the site `by`, signed it with a valid certificate."""
        at, name = (
            self._began + datetime.timedelta(seconds=self.scheduler.now),
            frame.sender if by is None else by,
        )
        at += datetime.timedelta(seconds=self.clock.get(number, 0.0))
        check_signature(trust(self.revoked.get(number, frozenset())), frame, f"s{name}", at)

    def _envelopes(self, number: int, process: str, stolen: bool = False) -> Envelopes:
        """The envelopes of one process; a thief signs with the first key of a site."""
        draw = random.Random(f"envelopes {self.plan.seed} {number} {process}")
        return Envelopes(
            JOB,
            number,
            lambda content: (identity(number) if stolen else self.identity(number)).seal(content),
            lambda frame, via: None if stolen else self._believe(number, frame, via),
            draw.randbytes,
        )

    def add_thief(self, number: int) -> None:
        """Add a process that has stolen the first key of a site."""

        def note(sender: int) -> None:
            if number in self.revoked.get(sender, ()):
                self.read.add((sender, number))

        thief = Thief(self._envelopes(number, "thief", stolen=True), note)
        self.network.thieves.setdefault(number, []).append(thief)

    def identity(self, number: int) -> Identity:
        """The key and certificate with which a site signs now."""
        return identity(number, -2.0 if number in self.expired else 30.0, int(number in self.rekeyed))

    def revoke(self, number: int, delay: Callable[[], float]) -> None:
        """Revoke the first key of a site; every other site learns this after a different delay."""
        for site in self.sites:
            if site.number != number:
                self.scheduler.after(delay(), lambda n=site.number: self._learn(n, number))  # type: ignore[misc]

    def _learn(self, number: int, revoked: int) -> None:
        """Tell a site about a revocation. Like a real site that reads it in site.toml, it draws new keys."""
        self.revoked[number] = self.revoked.get(number, frozenset()) | {revoked}
        for site in (self.sites[number], *self.network.twins.get(number, ())):
            if site.envelopes is not None:
                site.envelopes.renew()

    def _noted(self, site: MemorySite, effect: Effect) -> None:
        if isinstance(effect, Stop) and effect.reason in RESTARTS:
            self.scheduler.after(1.0, lambda: self._run_again(site))
        if self.trace is not None and (text := _in_words(effect)):
            self.say(f"s{site.number}.{site.life} {text}")

    def _run_again(self, site: MemorySite) -> None:
        """The operator runs the command of a stopped site again, even if the run has ended at other sites."""
        self.network.start(site)
        if self.healed:
            self.tries[site.number] = self.tries.get(site.number, 0) + 1
            for other in self.sites:
                if other.finished is not None:
                    self.network.start(other)

    def cut(self, one: int, other: int) -> bool:
        """Whether a partition stops frames from `one` to `other`."""
        return any((one in part) - (other in part) in ((1, -1) if both else (1,)) for part, both in self.cuts)

    def add_copy(self, site: MemorySite, disk: VirtualDisk) -> None:
        """Add a second process with the number and key of a site; both receive the frames for that number."""
        twins = self.network.twins.setdefault(site.number, [])
        twin = MemorySite(site.number, self._make, disk, life=1000 * (len(twins) + 1))  # for its own noise
        self.copied.add(site.number)
        twins.append(twin)
        self.network.start(twin)

    def say(self, text: str) -> None:
        """Add one line to the trace."""
        if self.trace is not None:
            self.trace.append(f"{self.scheduler.now:9.3f} {text}")

    def fault(self, at: float, text: str, act: Callable[[], None]) -> None:
        """Schedule a fault."""

        def happen() -> None:
            self.happened.append(f"{self.scheduler.now:.2f} {text}")
            self.say(f"FAULT {text}")
            act()

        self.scheduler.at(at, happen)

    def over(self) -> bool:
        """Whether every remaining honest site has ended."""
        return all(self.ended(site) for site in self.sites if site.number not in self.plan.liars)

    def ended(self, site: MemorySite) -> bool:
        if site.number in self.gone or site.away:
            return True
        if site.finished is not None:
            return not site.running
        if self.tries.get(site.number, 0) > TRIES:
            return True
        return bool(site.stops) and not site.running and site.stops[-1].reason not in RESTARTS

    def run(self) -> None:
        """Simulate the whole run, from the first start of a site to the end of the last site."""
        for site in self.sites:
            late = self.random.random() * 0.2
            self.scheduler.at(late, lambda site=site: self.network.start(site))  # type: ignore[misc]
        self.scheduler.run(HEALED)
        self.heal()
        self.scheduler.run(LONGEST if self.must_finish() else 2 * HEALED, self.over)

    def must_finish(self) -> tuple[int, ...]:
        """All sites that are not lost; none if too few of them remain, or if a site lies or runs twice."""
        plan, lost = self.plan, self.gone | self.lost | self.expired
        lost |= {site.number for site in self.sites if any(stop.reason in LOST for stop in site.stops)}
        rest = tuple(i for i in range(plan.sites) if i not in lost)
        enough = len(rest) >= plan.quorum and connected(rest, plan.links)
        agree = lost <= frozenset().union(*self.network.finishing.values()) or not self.network.finishing
        enough &= agree  # an early end needs all sites that the operators do not leave out
        return () if plan.liars or self.copied or self.imaged or not enough else rest

    def heal(self) -> None:
        """End all temporary faults: processes run, disks have space, links work, clocks are correct."""
        self.say("HEALED")
        self.healed = True
        self.clock.clear()
        self.cuts.clear()
        self.network.delay = lambda one, other: [0.005 + 0.02 * self.random.random()]
        for site in self.sites:
            site.disk.full = False
            site.away = site.number in self.gone
            if site.number not in self.gone and not site.running and site.finished is None:
                if not site.stops or site.stops[-1].reason in RESTARTS:
                    self.network.start(site)


def id_of(site: MemorySite) -> int:
    """Whether a site is a copy: it must not draw the same noise as the original."""
    return site.disk.records.get("copy", b"")[:1] == b"1"


def _in_words(effect: Effect) -> str:
    """An effect as one line of a trace; questions are left out."""
    match effect:
        case SendFrame(data, to):
            frame = decode(data, largest=LARGEST)
            name = Kind(frame.kind).name.lower()
            shown = f"{name} a={frame.attempt} t={frame.t} of s{frame.sender}"
            return f"sends {shown} {frame.scope.hex()[:6]} to {to or 'all'}"
        case StoreRecords(_, records, releases):
            charged = [(release.attempt, release.charge.t) for release in releases]
            return f"stores {', '.join(records)}" + (f"; charges {charged}" if charged else "")
        case Hold(entries):
            kept = [key if value is not None else f"no {key}" for key, value in entries.items()]
            return f"holds {', '.join(kept)}"
        case Ask():
            return ""
        case Finished():
            return (
                f"FINISHED after {effect.rounds} rounds, members {effect.members}, {effect.digest.hex()[:6]}"
            )
        case _:
            return f"{effect!r:.200}"
