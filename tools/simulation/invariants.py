"""Invariants of what the sites send, store and state. They must hold whatever faults happen.

A pad is a random vector that hides a message. A site's `life` counts the starts and ends of its process. A
round has left a site once the site has sent a commit or a message of this round.

pads        no pad covers two messages of one site
once        without masks, a site sends at most one message for each round
keys        no key and no salt is on a disk
ledger      every round that left a site is charged in the ledger of the site or of its copy
idle        an owner's account is charged only if the site committed to a message
epsilon     the epsilon recomputed from the transcript is at most the epsilon of the certificate, for any
            number of colluders; and the certificate's epsilon is at most the planned one
model       all honest sites that finish have the same result, and keep it
sums        a total is the sum of the members' messages, and no site continues from an impossible total
blame       only sites that lie, run twice or were rolled back are blamed
revoked     once a site knows that a certificate is revoked, the holder cannot read the site's messages
end         if no more sites than allowed are lost and no site lies, all other sites finish in bounded time

Exceptions, with their reasons:

image       a site cannot detect a restored machine image (memory and account): its figures are lower bounds
account     without masks, a site restored with its account may repeat rounds: its figures are lower bounds
unmet       a rolled-back site learns from others which messages it has sent; until then, only its account is
            checked
lie         a lying site can stop a run. A site that runs twice can do so too, because it signs twice. If more
            than `colluding` sites lie or run twice, two groups may end with two models: the quorum assumes
            at most `colluding` such sites
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from taciturn.methods.admm.attempt import EDGE
from taciturn.methods.base import Network
from taciturn.methods.sums.attempt import certified_run
from taciturn.methods.sums.prepared import PreparedSums
from taciturn.privacy.collusion import masked_cost, masked_mu
from taciturn.sites.protocol import core, pads, rounds
from taciturn.sites.protocol.core import read_total
from taciturn.sites.protocol.events import (
    Ask,
    ChargedRelease,
    Effect,
    Finished,
    Hold,
    Reason,
    SendFrame,
    StoreRecords,
)
from taciturn.sites.protocol.frames import Kind, decode, unpack_frames

from .liars import split_message
from .memory import MemorySite
from .program import CLIP, DELTA, EPSILON, tables
from .world import LARGEST, World

_ROUNDING = 1 + 1e-6


@dataclass
class Observer:
    """Sees everything that honest sites send or store, and knows every pad and every value."""

    world: World
    pads_of: dict[bytes, list[bytes]] = field(default_factory=dict)
    covered: dict[tuple[int, bytes], set[bytes]] = field(default_factory=lambda: defaultdict(set))
    commits: dict[int, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    messages: dict[int, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    sent: dict[tuple[int, int], set[bytes]] = field(default_factory=lambda: defaultdict(set))
    committed: set[int] = field(default_factory=set)
    results: dict[int, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    extreme: set[tuple[int, int, int]] = field(default_factory=set)
    releases: dict[tuple[int, int, int], ChargedRelease] = field(default_factory=dict)
    values: dict[tuple[int, int], dict[int, set[bytes]]] = field(default_factory=dict)
    totals: list[tuple[int, int, tuple[int, ...], int, bytes]] = field(default_factory=list)
    secrets: dict[int, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    met: dict[int, int] = field(default_factory=dict)  # site -> its `life` when it last met others or left

    def mask(self, own: int, y: bytes, keys: Any, scope: bytes, commits: Any) -> bytes:
        """`pads.mask`, which also records the pads that were used."""
        masked = pads.mask(own, y, keys, scope, commits)
        self.pads_of[masked] = [
            pads.pad_key(key, scope, keys.t, commits[min(own, j)], commits[max(own, j)])
            for j, key in keys.keys.items()
        ]
        self.values.setdefault((keys.attempt, keys.t), defaultdict(set))[own].add(y)
        return masked

    def watch(self, site: MemorySite, data: bytes) -> None:
        """Record a frame that leaves a site."""
        frame = _decode_once(data, largest=LARGEST)
        if frame.sender != site.number or site.number in self.world.plan.liars:
            return
        if frame.kind == Kind.COMMIT:
            self.commits[site.number].add((frame.attempt, frame.t))
        if frame.kind == Kind.MESSAGE:
            self.messages[site.number].add((frame.attempt, frame.t))
            self.sent[site.number, frame.t].add(frame.payload)
            for key in self.pads_of.get(frame.payload, ()):
                self.covered[site.number, key].add(frame.payload)

    def left(self, number: int) -> set[tuple[int, int]]:
        """The rounds of which a message left a site or, if it was never rolled back, a commit left it."""
        forgot = number in self.world.rolled_back
        return self.messages[number] | (set() if forgot else self.commits[number])

    def noted(self, site: MemorySite, effect: Effect) -> None:
        """Record an effect that a site requests."""
        if isinstance(effect, Ask | SendFrame):
            return
        if isinstance(effect, Finished):
            self.results[site.number].add(effect.digest)
        if isinstance(effect, Hold):
            self.secrets[site.number].update(_secrets(effect))
        if not isinstance(effect, StoreRecords) or site.number in self.world.plan.liars:
            return
        if site is self.world.sites[site.number] and (
            effect.records.get("live") or effect.records.get("left")
        ):
            self.met[site.number] = site.life
        if effect.releases and (effect.records.get("commit") or effect.records.get("message")):
            self.committed.add(site.number)
        for release in effect.releases:
            self.releases[site.number, release.attempt, release.charge.t] = release
        for key, value in effect.records.items():
            if key.startswith("total/") and value is not None:
                facts, _, heard = read_total(value)
                self.totals.append((site.number, facts.number, facts.members, int(key[6:]), heard))
        if self.world.plan.method == "penalty" and effect.records.get("frames"):
            self._look_at(site.number, effect.records["frames"] or b"")

    def _look_at(self, number: int, frames: bytes) -> None:
        """Without masks: record the received vectors of which half the entries are near the clip."""
        for frame in (decode(data, largest=LARGEST) for data in unpack_frames(frames)):
            values = np.abs(np.frombuffer(split_message(frame.payload)[1], dtype="<f8"))
            far = np.median(values) >= EDGE * CLIP or not (values <= CLIP).all()
            if frame.sender != number and far:
                self.extreme.add((number, frame.sender, frame.t))


_decode_once = lru_cache(maxsize=8192)(decode)  # the same bytes reach many sites, and a frame does not change


@contextmanager
def observed(world: World) -> Iterator[Observer]:
    """A block in which an observer watches the world."""
    observer, mask, noted = Observer(world), rounds.mask, world.network.noted

    def both(site: MemorySite, effect: Effect) -> None:
        observer.noted(site, effect)
        noted(site, effect)

    rounds.mask, core.decode = observer.mask, _decode_once
    world.network.watch, world.network.noted = observer.watch, both
    try:
        yield observer
    finally:
        rounds.mask, core.decode = mask, decode


def check(world: World, observer: Observer) -> list[str]:
    """Every invariant that does not hold, as text."""
    return [line for test in CHECKS for line in test(world, observer)]


def _honest(world: World) -> list[MemorySite]:
    return [site for site in world.sites if site.number not in world.plan.liars]


def _doubled(world: World) -> set[int]:
    """Sites of which two processes may sign: because of a running copy, or a restored machine image."""
    return world.copied | world.imaged


def check_pads(world: World, observer: Observer) -> list[str]:
    return [
        f"pads: s{site} covered {len(messages)} messages with one pad"
        for (site, _), messages in observer.covered.items()
        if len(messages) > 1
    ]


def check_once(world: World, observer: Observer) -> list[str]:
    if world.plan.method != "penalty":
        return []
    return [
        f"once: s{site} sent {len(payloads)} messages of round {t}"
        for (site, t), payloads in observer.sent.items()
        if len(payloads) > 1 and site not in _doubled(world) | world.restored
    ]


def check_keys(world: World, observer: Observer) -> list[str]:
    found = []
    for site in _honest(world):
        disk = b"".join(site.disk.records.values())
        if any(secret in disk for secret in observer.secrets[site.number]):
            found.append(f"keys: a secret of s{site.number} is on its disk")
    return found


def _secrets(effect: Hold) -> Iterator[bytes]:
    """The keys and salts that a site keeps in volatile memory."""
    for name, value in effect.entries.items():
        if value is not None and name == "keys":
            yield from pads.RoundKeys.unpack(value).keys.values()
        elif value is not None:
            yield value[8:40] if name == "y" else value[4:]


def check_ledgers(world: World, observer: Observer) -> list[str]:
    """Every round that left a site is in its ledger, or in the ledger of its copy.

    A rolled-back site that has not met the others since then only needs a charged account.
    """
    found = []
    masked = world.plan.method == "masked"  # without masks, a round leaves a site in one attempt at most
    for site in _honest(world):
        number = site.number
        disks = [site.disk, *(twin.disk for twin in world.network.twins.get(number, ()))]
        left = {(a * masked, t) for a, t in observer.left(number)}
        if left and number not in world.restored and not any(disk.account for disk in disks):
            found.append(f"ledger: s{number} sent {sorted(left)}, but its account is not charged")
        unmet = observer.met.get(number, -1) < world.rolled_back.get(number, -1)
        if unmet or number in world.imaged or (not masked and number in world.restored):
            continue
        charged = {(r.attempt * masked, r.charge.t) for disk in disks for r in disk.ledger}
        if left - charged:
            found.append(f"ledger: s{number} sent {sorted(left - charged)}, but charged {sorted(charged)}")
    return found


def check_idle(world: World, observer: Observer) -> list[str]:
    """No account is charged before a commit of its site, unless the site states that it lost its memory."""
    if len(world.plan.liars | _doubled(world)) > world.plan.colluding:
        return []
    known = observer.committed | world.rolled_back.keys() | world.copied
    charged = [site for site in _honest(world) if site.disk.account and site.number not in known]
    idle = [site for site in charged if "lost" not in site.disk.records]
    return [f"idle: the account of s{site.number} is charged, but it made no commit" for site in idle]


def check_costs(world: World, observer: Observer) -> list[str]:
    """Compare mu, recomputed from the messages that left, with mu from the facts of the certificate."""
    plan, found = world.plan, []
    if plan.method != "masked":
        return found
    numbers = tables(plan.sites, plan.colluding, plan.rounds)
    network = Network.without_rows([1] * plan.sites, [1] * plan.sites, total=plan.sites, dimension=1)
    base = PreparedSums(network, numbers).run_facts(simulated=True)
    for site in _honest(world):
        if site.finished is None or not site.disk.ledger or site.number in _doubled(world):
            continue
        ledger = sorted({(r.attempt, r.charge.t): r for r in site.disk.ledger}.items())
        stated = [(f"{number:064x}", r.members, r.sum) for (number, _), r in ledger if r.sum is not None]
        run = certified_run(base, stated)
        sent = [observer.releases.get((site.number, *key)) for key in observer.left(site.number)]
        for c in range(plan.sites):
            certified = masked_mu(run, range(1, len(stated) + 1), run.honest(c)) ** 2
            real = sum(_mu2(release, c) for release in sent if release is not None)
            if real > certified * _ROUNDING:
                found.append(f"epsilon: s{site.number} mu^2 {real:g} left, {certified:g} certified, c={c}")
        cost = masked_cost(run, range(1, len(stated) + 1), DELTA, run.honest(plan.colluding))
        lied = bool(plan.liars | _doubled(world))
        misled = lied and "lost" in site.disk.records  # it accepts false charges
        if cost > EPSILON * _ROUNDING and not misled:
            found.append(f"epsilon: s{site.number} certifies {cost:g}, above the plan's {EPSILON:g}")
    return found


def _mu2(release: ChargedRelease, colluding: int) -> float:
    entry = release.sum
    if entry is None:
        return 0.0
    units = (entry.sensitivity + 2 * entry.stray) / entry.grid + math.sqrt(entry.length)
    return (units / entry.std) ** 2 / max(1, len(release.members) - colluding)


def check_models(world: World, observer: Observer) -> list[str]:
    """All honest sites have the same result. A site that runs twice may sign twice, so it counts as lying."""
    if len(world.plan.liars | _doubled(world)) > world.plan.colluding:
        return []
    results = {n: digests for n, digests in observer.results.items() if n not in world.plan.liars}
    if len(set().union(*results.values())) < 2:
        return []
    return [f"model: { ({n: [digest.hex()[:6] for digest in found] for n, found in results.items()}) }"]


def check_totals(world: World, observer: Observer) -> list[str]:
    plan, found = world.plan, []
    for one, other, t in sorted(observer.extreme):
        found.append(f"sums: s{one} accepted values of s{other} at the edge of the range, in round {t}")
    if plan.method != "masked":
        return found
    odd = world.plan.liars | _doubled(world)
    for site, number, members, t, heard in observer.totals:
        release = next((r for (_, a, k), r in observer.releases.items() if (a, k) == (number, t)), None)
        if release is None or release.sum is None:
            continue
        total = np.frombuffer(heard, dtype="<i8").astype(float) * release.sum.grid
        noise = release.sum.grid * release.sum.std * math.sqrt(len(members))
        if np.linalg.norm(total) > 1.0 + noise * (math.sqrt(release.sum.length) + 7.0):
            found.append(f"sums: s{site} accepted an impossible sum of round {t}")
        values = observer.values.get((number, t), {})
        if not odd & set(members) and all(len(values.get(i, ())) == 1 for i in members):
            true = sum(np.frombuffer(next(iter(values[i])), dtype="<i8") for i in members)
            if np.asarray(true, dtype="<i8").tobytes() != heard:
                found.append(f"sums: the total of round {t} at s{site} is not the sum of the messages")
    return found


def check_blame(world: World, observer: Observer) -> list[str]:
    odd = world.plan.liars | _doubled(world)
    return [
        f"blame: s{site.number} blames s{stop.about}: {stop.text:.80}"
        for site in _honest(world)
        for stop in site.stops
        if stop.reason in (Reason.CONTRADICTION, Reason.IMPOSSIBLE) and stop.about not in {None, *odd}
    ]


def check_end(world: World, observer: Observer) -> list[str]:
    """All sites that are not lost finish, unless a site lies or runs twice, or too many are lost."""
    rest = world.must_finish()
    return [
        f"end: s{site.number} has not finished: {[stop.reason.value for stop in site.stops][-3:]}"
        for site in world.sites
        if site.number in rest and site.finished is None
    ]


def check_revoked(world: World, observer: Observer) -> list[str]:
    return [f"revoked: s{one} lets a thief of the key of s{other} read" for one, other in sorted(world.read)]


CHECKS = (
    check_pads,
    check_once,
    check_keys,
    check_ledgers,
    check_idle,
    check_costs,
    check_models,
    check_totals,
    check_blame,
    check_end,
    check_revoked,
)
