"""Lying sites: how they change the frames that an honest site in their place would send."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from taciturn.sites.protocol.ending import Farewell
from taciturn.sites.protocol.events import Event, Heard
from taciturn.sites.protocol.frames import (
    NOTHING,
    Kind,
    SignedFrame,
    Slot,
    decode,
    encode,
    pack_plain,
    read_plain,
)
from taciturn.sites.protocol.membership import FrameRefused, Past, pack_proposal, read_hello, read_proposal
from taciturn.sites.protocol.pads import pack_commit, read_commit

from .memory import MemorySite
from .program import tables
from .world import JOB, LARGEST, Plan, World

Lie = Callable[["Liar", SignedFrame, int], list[bytes] | None]
LIES: dict[str, Lie] = {}


def _lie(*kinds: Kind) -> Callable[[Lie], Lie]:
    """Register a lie. If `kinds` are given, it changes only the liar's own frames of these kinds."""

    def register(act: Lie) -> Lie:
        def told(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
            if kinds and (frame.kind not in kinds or frame.sender != liar.number):
                return None
            return act(liar, frame, to)

        LIES[act.__name__] = told
        return act

    return register


class Liar:
    """One lying site. It is honest except for its lies, each of which it tells with some probability."""

    def __init__(self, number: int, world: World, draw: random.Random) -> None:
        self.number, self.world, self.draw = number, world, draw
        self.lies = [LIES[name] for name in draw.sample(sorted(LIES), draw.randint(1, 3))]
        self.chance = draw.choice((0.2, 0.5, 1.0))
        self.heard: list[bytes] = []
        self.others: dict[tuple[int, int, int, bytes], dict[int, bytes]] = {}
        self.held: dict[tuple[int, int, bytes], list[tuple[SignedFrame, int]]] = {}

    def tell(self, data: bytes, to: int) -> list[bytes]:
        """The frames that the liar sends to the site `to` instead of this frame."""
        frame = decode(data, largest=LARGEST)
        self.heard.append(data)
        for lie in self.lies:
            if self.draw.random() < self.chance:
                told = lie(self, frame, to)
                if told is not None and told != [data]:
                    return told
        return [data]

    def sign(self, frame: SignedFrame, payload: bytes) -> bytes:
        """Sign another payload for the same slot."""
        return self.seal(frame.slot, frame.scope, payload)

    def seal(self, slot: Slot, scope: bytes, payload: bytes) -> bytes:
        """Sign any frame as the lying site."""
        return self.world.identity(self.number).seal(encode(JOB, slot, scope, payload))

    def send(self, data: bytes, to: int, delay: float = 0.01) -> None:
        """Send a frame to a site, after a delay."""
        network, later = self.world.network, Heard(data, self.number)
        self.world.scheduler.after(delay, lambda: network.tell(network.sites[to], later))

    def listen(self, data: bytes) -> None:
        """Receive a frame of another site. The liar may sign the same attempt, or adapt its own message."""
        try:
            frame = decode(data, largest=LARGEST)
        except FrameRefused:
            return
        if frame.sender == self.number:
            return
        said = self.others.setdefault((frame.kind, frame.attempt, frame.t, frame.scope), {})
        said[frame.sender] = frame.payload
        if frame.kind == Kind.SIGN and LIES["sign_all"] in self.lies:
            self.send(
                self.seal(Slot(Kind.SIGN, frame.attempt, 0, self.number), frame.scope, b""), frame.sender
            )
        if frame.kind == Kind.MESSAGE:
            self._dictate(frame)

    def _dictate(self, frame: SignedFrame) -> None:
        """Once all other messages have arrived, send a message that sets the sum to a chosen value."""
        place = (frame.attempt, frame.t, frame.scope)
        commits = self.others.get((Kind.COMMIT, *place), {})
        messages = self.others.get((Kind.MESSAGE, *place), {})
        if not commits or set(commits) - set(messages) or place not in self.held:
            return
        total = sum((np.frombuffer(messages[i], dtype="<u8") for i in commits), np.uint64(0))
        wanted = np.zeros_like(total)
        plan = self.world.plan
        wanted[0] = int(0.9 / tables(plan.sites, plan.colluding, plan.rounds).sums[frame.t - 1].grid)
        for mine, to in self.held.pop(place):
            self.send(self.sign(mine, (wanted - total).tobytes()), to)


@lru_cache(maxsize=32)
def earlier_frames(sites: int) -> list[bytes]:
    """All frames of an earlier run of the same job by the same sites."""
    every = tuple(tuple(j for j in range(sites) if j != i) for i in range(sites))
    world, frames = World(Plan(0, sites, 0, 2, sites, every)), list[bytes]()
    world.network.watch = lambda site, data: frames.append(data)
    world.run()
    return frames


def plant_liars(world: World) -> None:
    """Make the lying sites of a run lie."""
    draw = random.Random(f"liars {world.plan.seed}")
    liars = {number: Liar(number, world, draw) for number in sorted(world.plan.liars)}

    def twist(site: MemorySite, data: bytes, to: int) -> list[bytes]:
        liar = liars.get(site.number)
        return [data] if liar is None else liar.tell(data, to)

    tell = world.network.tell

    def listening(site: MemorySite, event: Event) -> None:
        if site.number in liars and isinstance(event, Heard):
            liars[site.number].listen(event.data)
        tell(site, event)

    world.network.twist = twist
    if liars:
        world.network.tell = listening  # type: ignore[method-assign]


def split_message(payload: bytes) -> tuple[bytes, bytes]:
    """The header and the numbers of a message; a masked message has numbers only."""
    plain = read_plain(payload)
    return (b"", payload) if plain is None else (pack_plain(plain[0], b""), plain[1])


def flipped(payload: bytes) -> bytes:
    """The same message with one bit of its numbers changed."""
    head, body = split_message(payload)
    return head + bytes([body[0] ^ 1]) + body[1:]


@_lie(Kind.MESSAGE)
def huge(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Send impossible values, which enter the sum of all sites."""
    head, body = split_message(frame.payload)
    values = np.frombuffer(body, dtype="<u8") + np.uint64(2**61)
    return [liar.sign(frame, head + values.tobytes())]


@_lie(Kind.MESSAGE, Kind.COMMIT, Kind.DONE)
def equivocate(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Send different frames of one slot to different sites."""
    return None if to % 2 else [liar.sign(frame, flipped(frame.payload))]


@_lie(Kind.MESSAGE)
def two_faced(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Send different messages of a round to different sites; other frames stay honest."""
    return None if to % 2 else [liar.sign(frame, flipped(frame.payload))]


@_lie()
def withhold(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Send a frame to some sites only."""
    return [] if (to + frame.kind) % 2 else None


@_lie(Kind.COMMIT)
def wrong_keys(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """State the hash of a key that the other site does not have."""
    read = read_commit(frame.payload)
    if read is None:
        return None
    value, digest, hashes = read
    return [liar.sign(frame, pack_commit(value, digest, dict.fromkeys(hashes, bytes(32))))]


@_lie(Kind.HELLO)
def boast(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Claim rounds that no site has completed, or attempts that never existed."""
    hello = read_hello(frame.payload)
    if liar.draw.random() < 0.5:
        changed = replace(hello, completed=(hello.completed[0] + 1, hello.completed[1] + 1), digest=bytes(32))
    else:
        invented = Past(1, tuple(range(liar.world.plan.sites)), 0, 0.5, 1)
        changed = replace(hello, past=(invented,))
    return [liar.sign(frame, changed.pack())]


@_lie(Kind.HELLO)
def forget(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """State no earlier charges, although a site that lost its state may need them."""
    return [liar.sign(frame, replace(read_hello(frame.payload), past=()).pack())]


@_lie(Kind.HELLO)
def weak_key(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Send a public key of low order, with which every shared secret is known."""
    return [liar.sign(frame, replace(read_hello(frame.payload), key=bytes(32)).pack())]


@_lie()
def forge_members(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Propose fewer members than a quorum, or sites that are not present."""
    if frame.kind != Kind.PROPOSE:
        return None
    try:
        chosen = read_proposal(frame.payload)
    except FrameRefused:
        return None
    kept = {i: digest for i, digest in chosen.items() if i in (liar.number, to)}
    slot = Slot(Kind.PROPOSE, frame.attempt, 0, liar.number)
    return [liar.seal(slot, NOTHING, pack_proposal(kept or chosen))]


@_lie()
def replay(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Send old frames, of this run and of earlier runs, in addition to new ones."""
    old = liar.draw.choice(liar.heard)
    return [liar.heard[-1], old, liar.draw.choice(earlier_frames(liar.world.plan.sites))]


@_lie()
def restart_all(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Request one new attempt after another."""
    if frame.kind not in (Kind.COMMIT, Kind.MESSAGE) or liar.draw.random() < 0.7:
        return None
    hellos = [data for data in liar.heard if decode(data, largest=LARGEST).kind == Kind.HELLO]
    mine = [f for f in (decode(data, largest=LARGEST) for data in hellos) if f.sender == liar.number]
    if not mine:
        return None
    slot = Slot(Kind.HELLO, frame.attempt + 1, 0, liar.number)
    return [liar.heard[-1], liar.seal(slot, NOTHING, mine[-1].payload)]


@_lie(Kind.COMMIT, Kind.MESSAGE)
def rush(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Send frames late, to choose a commit after seeing the commits of the others."""
    liar.send(liar.heard[-1], to, delay=0.5)
    return []


@_lie(Kind.MESSAGE)
def dictate(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Hold the message back. Once all others have arrived, `Liar.listen` sends one that sets the sum."""
    if liar.world.plan.method != "masked":
        return None
    liar.held.setdefault((frame.attempt, frame.t, frame.scope), []).append((frame, to))
    return []


@_lie()
def sign_all(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Sign every attempt that any site signs, even two with the same number; `Liar.listen` does this."""
    return None


@_lie(Kind.HELLO)
def two_hellos(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Send a different hello to every other site."""
    if to % 2:
        return None
    hello = read_hello(frame.payload)
    return [liar.sign(frame, replace(hello, nonce=bytes(32 - len(b"%d" % to)) + b"%d" % to).pack())]


@_lie(Kind.HELLO)
def absurd(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Send a hello with impossible sites, rounds, attempts or shares."""
    hello, sites = read_hello(frame.payload), tuple(range(liar.world.plan.sites))
    past = liar.draw.choice(
        (
            Past(1, (0, 400), 0, 1.0, 1),
            Past(1, sites, 0, 1.0, 2**31),
            Past(2**31, sites, 0, 1e-300, 1),
            Past(1, sites, 2**31, 1.0, 2**31),
            Past(1, (), 0, 1.0, 1),
        )
    )
    return [liar.sign(frame, replace(hello, past=(past,)).pack())]


@_lie(Kind.COMMIT, Kind.DONE, Kind.LEAVE)
def false_end(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """State a result that no site has, and leave with charges that were never made."""
    done = liar.seal(Slot(Kind.DONE, frame.attempt, 0, liar.number), frame.scope, bytes(32))
    sites = tuple(range(liar.world.plan.sites))
    words = Farewell((frame.attempt, 1), (Past(1, sites, 0, 0.5, 1),), ()).pack()
    left = liar.seal(Slot(Kind.LEAVE, frame.attempt, 0, liar.number), NOTHING, words)
    return [done, left] if frame.kind == Kind.LEAVE else [liar.heard[-1], done, left]


@_lie(Kind.TOTAL)
def false_totals(liar: Liar, frame: SignedFrame, to: int) -> list[bytes] | None:
    """Send false totals, or false last vectors, to a site that was away."""
    return [liar.sign(frame, frame.payload[:-1] + bytes([frame.payload[-1] ^ 1]))]
