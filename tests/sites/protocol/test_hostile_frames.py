"""Frames that a member signs and the protocol does not expect: no site crashes or fills up."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest
from tools.simulation.invariants import check, observed
from tools.simulation.world import JOB, LARGEST, Plan, World

from taciturn.sites.protocol import core
from taciturn.sites.protocol.events import QuestionAsked
from taciturn.sites.protocol.frames import NOTHING, Kind, SignedFrame, Slot, decode, encode
from taciturn.sites.protocol.meeting import Meeting
from taciturn.sites.protocol.membership import Agreed, Past

LIAR = 3
EDGES = (0, 1, 2, 64, 65, 255, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1)
FLOATS = (0.0, 1.0, -1.0, 1e-308, 1e308, float("inf"), float("nan"))


def world(seed: int = 0, method: str = "masked", quorum: int = 3) -> World:
    """Four sites on a complete graph; the last of them lies."""
    links = tuple(tuple(j for j in range(4) if j != i) for i in range(4))
    return World(Plan(seed, 4, 1, 3, quorum, links, frozenset({LIAR}), method))


def signed(run: World, slot: Slot, scope: bytes = NOTHING, payload: bytes = b"") -> bytes:
    return run.identity(LIAR).seal(encode(JOB, slot, scope, payload))


def disturb(run: World, more: Callable[[SignedFrame], list[bytes]]) -> list[str]:
    """Send more frames after each frame of the liar; return the invariants that broke."""

    def twist(site, data, to):
        return [data, *more(decode(data, largest=LARGEST))] if site.number == LIAR else [data]

    run.network.twist = twist
    with observed(run) as observer:
        run.run()
    return check(run, observer)


@pytest.mark.parametrize("kind", [Kind.HELLO, Kind.SIGN, Kind.COMMIT])
def test_the_number_of_an_attempt_cannot_be_used_up(kind):
    """Without a limit, one frame makes the next number too large for its field, and every site crashes.

    One site disappears, so that the others need another number.
    """
    run, hellos = world(), list[bytes]()

    def more(frame: SignedFrame) -> list[bytes]:
        hellos.extend([frame.payload] if frame.kind == Kind.HELLO and frame.sender == LIAR else [])
        payload = hellos[-1] if kind == Kind.HELLO else b""
        if frame.kind == Kind.MESSAGE and run.sites[0].life == 1:
            run.gone.add(0)
            run.network.kill(run.sites[0])
        return [signed(run, Slot(kind, 2**32 - 1, 0, LIAR), payload=payload)] if hellos else []

    assert not disturb(run, more)
    assert all(site.finished is not None for site in run.sites[1:LIAR])
    assert max(site.disk.records["number"] for site in run.sites) < struct.pack("<I", 100)


@pytest.mark.parametrize("kind", [Kind.HELLO, Kind.SIGN, Kind.TOTAL])
def test_a_member_that_floods_the_others_fills_only_its_own_share(kind, monkeypatch):
    """The honest sites refuse its frames and continue without it."""
    monkeypatch.setattr(core, "MOST_HELD", 100)
    run, hellos, numbers = world(), list[bytes](), iter(range(800))

    def more(frame: SignedFrame) -> list[bytes]:
        hellos.extend([frame.payload] if frame.kind == Kind.HELLO and frame.sender == LIAR else [])
        some = [k for k, _ in zip(numbers, range(50), strict=False)] if hellos else []
        if kind == Kind.HELLO:
            return [signed(run, Slot(kind, 9000 - k, 0, LIAR), payload=hellos[-1]) for k in some]
        return [signed(run, Slot(kind, 1, 0, LIAR), k.to_bytes(32, "little")) for k in some]

    most = [0]
    accept = core.Core.accept

    def counted(self, data, via):
        frame = accept(self, data, via)
        most[0] = max(most[0], len(self.board), len(self.hellos))
        return frame

    monkeypatch.setattr(core.Core, "accept", counted)
    assert not disturb(run, more)
    assert next(numbers, None) is None and 100 < most[0] < 250
    honest = run.sites[:LIAR]
    assert all(site.finished is not None and not site.stops for site in honest)
    assert all(set(site.finished.members) == {0, 1, 2} for site in honest)


def changed(draw: random.Random, payload: bytes) -> bytes:
    """The same bytes with a few bits, numbers or lengths changed."""
    data = bytearray(payload)
    for _ in range(draw.choice((0, 1, 1, 2, 4))):
        place, value = draw.randrange(len(data) + 1), draw.choice(EDGES)
        parts = (
            struct.pack("<I", value),
            struct.pack("<H", value % 2**16),
            struct.pack("<d", draw.choice(FLOATS)),
            draw.randbytes(1),
        )
        part = draw.choice(parts)
        data[place : place + len(part)] = part
        if draw.random() < 0.2:
            del data[draw.randrange(len(data)) :]
    return bytes(data)


@pytest.mark.parametrize("method", ["masked", "penalty"])
@pytest.mark.parametrize("seed", range(12))
def test_malformed_frames_and_questions_crash_no_site(seed, method):
    draw = random.Random(f"malformed {seed}")
    run, chance, known = (
        world(seed, method, draw.choice((3, 4))),
        draw.choice((0.05, 0.3)),
        list[SignedFrame](),
    )

    def malformed() -> bytes:
        frame = draw.choice(known[-60:])
        attempt, t = (
            old if draw.random() < 0.7 else draw.choice((old + 1, *EDGES)) for old in (frame.attempt, frame.t)
        )
        kind = frame.kind if draw.random() < 0.8 else draw.randrange(1, 10)
        scope = frame.scope if draw.random() < 0.8 else draw.randbytes(32)
        slot = Slot(kind, attempt % 2**32, t % 2**32, LIAR)
        return signed(run, slot, scope, changed(draw, frame.payload))

    def ask() -> None:
        slots = [
            (draw.randrange(12), draw.choice(EDGES), draw.choice(EDGES), draw.randrange(6)) for _ in range(20)
        ]
        question = b"".join(struct.pack("<BIIH", *slot) for slot in slots) + draw.randbytes(3)
        for site in run.sites[:LIAR]:
            run.network.tell(site, QuestionAsked(question, LIAR))

    def more(frame: SignedFrame) -> list[bytes]:
        if frame.kind not in (Kind.COMMIT, Kind.MESSAGE, Kind.DONE) or draw.random() < 0.1:
            known.append(frame)  # another frame of one round is a contradiction, which ends the run
        if draw.random() < chance:
            run.scheduler.after(0.01, ask)
        return [malformed() for _ in range(3) if known and draw.random() < chance]

    assert not disturb(run, more)


@pytest.mark.parametrize("method", ["masked", "penalty"])
def test_invented_attempts_do_not_overflow_the_hello_of_a_site_that_lost_its_state(method, monkeypatch):
    """A hello has room for 64 earlier attempts. The liar states 40 others in each hello, and never signs."""
    run, numbers = world(method=method), iter((1000, 2000, 3000))
    honest, sign = Meeting._stated_past, Meeting._sign

    def invented(self: Meeting) -> list[Past]:
        if self.setup.own != LIAR or self.number < 1000:
            return honest(self)
        return [Past(self.number - k, (0, 1, 2, 3), 0, 1e-9, 2) for k in range(40, 0, -1)]

    def begin_again(self: Meeting, agreed: Agreed) -> None:
        number = next(numbers, None) if self.setup.own == LIAR and run.sites[0].life > 1 else None
        if number is None:
            sign(self, agreed)
        else:
            self.meet(number)

    def lose() -> None:
        run.network.kill(run.sites[0], power=True)
        run.rolled_back[0] = run.sites[0].life
        run.sites[0].disk.records.clear()
        run.network.start(run.sites[0])

    monkeypatch.setattr(Meeting, "_stated_past", invented)
    monkeypatch.setattr(Meeting, "_sign", begin_again)
    run.network.delay = lambda one, other: [0.05]
    run.fault(0.3, "s0 loses its state", lose)
    assert not disturb(run, lambda frame: [])
    assert next(numbers, 3000) == 3000 and "lost" in run.sites[0].disk.records
