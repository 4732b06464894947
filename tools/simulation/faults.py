"""Draw the faults of a run from its seed, and combine them at random."""

from __future__ import annotations

import random
from collections.abc import Callable

from taciturn.sites.protocol.events import Heard
from taciturn.sites.protocol.frames import Kind, decode, encode

from .liars import flipped
from .memory import MemorySite
from .world import HEALED, JOB, LARGEST, Plan, World, identity

KINDS: dict[str, Callable[[World, random.Random], None]] = {}


def _kind(act: Callable[[World, random.Random], None]) -> Callable[[World, random.Random], None]:
    KINDS[act.__name__] = act
    return act


def draw_plan(seed: int, sites: int | None, method: str | None = None) -> Plan:
    """Draw the size, the membership rules and the lying sites of a run."""
    draw = random.Random(f"plan {seed}")
    n = sites or draw.choice((2, 3, 3, 4, 5, 5, 5, 6, 7, 8, 12, 20))
    colluding = draw.randrange(0, max(1, min(3, n - 1)))
    chosen = method or ("masked" if draw.random() < 0.85 else "penalty")
    least = (n + colluding) // 2 + 1
    quorum = least if draw.random() < 0.8 else n
    every = tuple(tuple(j for j in range(n) if j != i) for i in range(n))
    ring = tuple(tuple(sorted({(i - 1) % n, (i + 1) % n} - {i})) for i in range(n))
    links = ring if draw.random() < 0.2 else every
    most = colluding
    liars = draw.sample(range(n), draw.randint(0, min(most, 2))) if draw.random() < 0.4 else []
    if draw.random() < 0.05:  # more liars than planned; the certificate has figures for this case too
        liars = draw.sample(range(n), min(n - 1, colluding + 1))
    return Plan(seed, n, colluding, draw.choice((2, 3, 3, 4)), quorum, links, frozenset(liars), chosen)


def draw_faults(world: World, most: int = 4) -> None:
    """Draw lost and delayed frames, an early end, and up to `most` faults for this run."""
    draw = random.Random(f"faults {world.plan.seed}")
    _weather(world, draw)
    _early_end(world, random.Random(f"finish early {world.plan.seed}"))
    for _ in range(draw.randint(0, most)):
        KINDS[draw.choice(sorted(KINDS))](world, draw)


def _when(draw: random.Random) -> float:
    """The time of a fault. Most faults happen in the short time in which the run is active."""
    return draw.random() ** 2 * (1.5 if draw.random() < 0.8 else HEALED * 0.9)


def _site(world: World, draw: random.Random) -> MemorySite:
    return world.sites[draw.randrange(world.plan.sites)]


def _weather(world: World, draw: random.Random) -> None:
    """Lose, duplicate, delay and reorder frames."""
    loss, twice = draw.choice((0, 0, 0.02, 0.2)), draw.choice((0, 0, 0.05))
    slow = draw.choice((0.01, 0.02, 0.02, 0.2))
    source = random.Random(f"weather {world.plan.seed}")

    def delay(one: int, other: int) -> list[float]:
        if source.random() < loss or world.cut(one, other):
            return []
        times = 2 if source.random() < twice else 1
        return [0.002 + slow * source.random() ** 2 for _ in range(times)]

    world.network.delay = delay
    sync = draw.choice((0.001, 0.005, 0.05))
    world.network.fsync = lambda: sync * (0.2 + source.random())


def _early_end(world: World, draw: random.Random) -> None:
    """In a few runs, all operators end the run early, at different times, without some vanished sites."""
    if draw.random() >= 0.05:
        return
    begin, sites = _when(draw), range(world.plan.sites)
    left_out = frozenset(draw.sample(sites, draw.choice((0, 0, 1, 2)) if len(sites) > 3 else 0))

    def finish(site: MemorySite) -> None:
        world.network.finishing[site.number] = left_out
        if site.running:
            world.network.kill(site)
            world.network.start(site)

    for site in world.sites:
        if site.number in left_out:
            _vanish(world, site, begin * draw.random())
        else:
            text = f"operator of s{site.number} ends the run without {sorted(left_out)}"
            world.fault(begin + draw.random() * draw.choice((0.05, 2.0)), text, lambda s=site: finish(s))  # type: ignore[misc]


def _down(world: World, site: MemorySite, draw: random.Random, *, power: bool) -> None:
    world.network.kill(site, power=power)
    world.scheduler.after(0.05 + 3 * draw.random() ** 3, lambda: world.network.start(site))


@_kind
def kill(world: World, draw: random.Random) -> None:
    site = _site(world, draw)
    world.fault(_when(draw), f"kill -9 of s{site.number}", lambda: _down(world, site, draw, power=False))


@_kind
def power_cut(world: World, draw: random.Random) -> None:
    for site in {
        site.number: site for site in (_site(world, draw) for _ in range(draw.choice((1, 1, 2, 9))))
    }.values():
        world.fault(
            _when(draw), f"power cut at s{site.number}", lambda s=site: _down(world, s, draw, power=True)
        )  # type: ignore[misc]


@_kind
def restore(world: World, draw: random.Random) -> None:
    """Restore the state from a backup: alone, with the account, or with the machine's memory."""
    site, what = _site(world, draw), draw.choice(("state", "state", "state and account", "image", "image"))
    early, late = sorted((_when(draw), _when(draw)))
    late = early + 0.3 * draw.random() if draw.random() < 0.5 else late  # often only a round or two later
    rebooted = draw.random() < 0.5
    longest = 4.0 if random.Random(f"return {world.plan.seed}").random() < 0.3 else 1.0

    def back() -> None:
        if site.finished is not None or site.number not in world.backups:
            return
        old = world.backups[site.number]
        world.network.kill(site, power=rebooted and what != "image")
        world.rolled_back[site.number] = site.life
        site.disk.records, site.disk.ledger = dict(old.records), list(old.ledger)
        if what != "state":
            site.disk.account, site.disk.account_mark = old.account, old.account_mark
            world.restored.add(site.number)
        if what == "image":
            site.disk.volatile = dict(old.volatile)
            world.imaged.add(site.number)
        world.scheduler.after(0.1 + longest * draw.random(), lambda: world.network.start(site))

    world.fault(
        early, f"backup of s{site.number}", lambda: world.backups.update({site.number: site.disk.copy()})
    )
    world.fault(late + 0.01, f"restore of s{site.number}: {what}", back)


@_kind
def copy(world: World, draw: random.Random) -> None:
    """Start a second process with the same key, on a copy of the files, with or without the memory."""
    site, memory = _site(world, draw), draw.random() < 0.3

    def appear() -> None:
        disk = site.disk.copy()
        disk.records["copy"] = b"1"
        if not memory:
            disk.volatile = {}
        world.add_copy(site, disk)

    world.fault(_when(draw), f"copy of s{site.number}", appear)


@_kind
def partition(world: World, draw: random.Random) -> None:
    part = {i for i in range(world.plan.sites) if draw.random() < 0.5}
    begin, cut = _when(draw), (part, draw.random() < 0.7)
    text = f"partition {sorted(part)}" + ("" if cut[1] else ", one way")
    world.fault(begin, text, lambda: world.cuts.append(cut))
    world.fault(min(HEALED, begin + 5 * draw.random()), "partition heals", lambda: world.cuts.remove(cut))


@_kind
def clock(world: World, draw: random.Random) -> None:
    site, jump = _site(world, draw), draw.choice((-3 * 86400.0, 3600.0, 40 * 86400.0))
    begin = _when(draw)
    world.fault(
        begin, f"clock of s{site.number} {jump:+.0f} s", lambda: world.clock.update({site.number: jump})
    )
    world.fault(
        begin + 2 * draw.random(), "clock set right", lambda: world.clock.pop(site.number, None) and None
    )


@_kind
def full_disk(world: World, draw: random.Random) -> None:
    site, begin = _site(world, draw), _when(draw)
    world.fault(begin, f"disk of s{site.number} full", lambda: setattr(site.disk, "full", True))
    world.fault(begin + 2 * draw.random(), "disk has room", lambda: setattr(site.disk, "full", False))


@_kind
def broke(world: World, draw: random.Random) -> None:
    site, begin = _site(world, draw), draw.choice((0.0, _when(draw)))
    world.fault(begin, f"account of s{site.number} does not pay", lambda: setattr(site.disk, "pays", False))


@_kind
def vanish(world: World, draw: random.Random) -> None:
    _vanish(world, _site(world, draw), _when(draw))


def _vanish(world: World, site: MemorySite, at: float) -> None:
    def go() -> None:
        world.network.kill(site)
        site.away = True
        world.gone.add(site.number)

    world.fault(at, f"s{site.number} vanishes for good", go)


@_kind
def be_away(world: World, draw: random.Random) -> None:
    """A site starts late; or it leaves, and returns after other sites may have continued without it."""
    site, begin = _site(world, draw), draw.choice((0.0, _when(draw)))

    def back() -> None:
        site.away = site.number in world.gone
        world.network.start(site)

    def go() -> None:
        world.network.kill(site, power=draw.random() < 0.5)
        site.away = True

    world.fault(begin, f"s{site.number} away", go)
    world.fault(min(HEALED, begin + 3 + 6 * draw.random()), f"s{site.number} back", back)


@_kind
def expire(world: World, draw: random.Random) -> None:
    site, world.sealed = _site(world, draw), True
    world.fault(_when(draw), f"certificate of s{site.number} expires", lambda: world.expired.add(site.number))


@_kind
def revoke(world: World, draw: random.Random) -> None:
    """Revoke a key. Some sites learn of this later than others. Half of the owners get a new key at once."""
    site, begin, again = _site(world, draw), _when(draw), draw.random() < 0.5
    world.sealed = True

    def act() -> None:
        world.revoke(site.number, lambda: draw.random() ** 2)
        if not again:
            world.lost.add(site.number)
            return
        world.network.kill(site)
        world.add_thief(site.number)
        world.rekeyed.add(site.number)
        world.scheduler.after(0.1 + draw.random(), lambda: world.network.start(site))
        for _ in range(draw.randrange(6)):
            world.scheduler.after(1.0 + 4 * draw.random(), lambda: _speak_as(world, site, draw))

    words = "is revoked, and it has a new key" if again else "is revoked"
    world.fault(begin, f"key of s{site.number} {words}", act)


def _speak_as(world: World, site: MemorySite, draw: random.Random) -> None:
    """A thief signs a frame with the revoked key: a hello, or a repeated frame of the site's attempt."""
    records = site.disk.records
    kept = [records[key] for key in ("hello", "commit", "message", "done") if key in records]
    if not kept:
        return
    frame = decode(draw.choice(kept), largest=LARGEST)
    slot = frame.slot._replace(attempt=frame.attempt + (frame.kind == Kind.HELLO))
    payload = flipped(frame.payload)
    stolen = identity(site.number).seal(encode(JOB, slot, frame.scope, payload))
    for other in world.plan.links[site.number]:
        world.network.tell(world.sites[other], Heard(stolen, site.number))
