"""Reactions of a site's state machine that do not show in the result of a simulated run."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from tools.simulation.world import JOB, Plan, World, identity

from taciturn.sites.protocol import core
from taciturn.sites.protocol.events import QuestionAsked, Reason, SendFrame, Started, Stop, StoreRecords, Tick
from taciturn.sites.protocol.frames import FrameRefused, Kind, Slot, encode, pack_frames, pack_question
from taciturn.sites.protocol.membership import Past
from taciturn.sites.protocol.pads import RoundKeys

LINKS = ((1, 2), (0, 2), (0, 1))


@pytest.fixture
def machine():
    world = World(Plan(seed=1, sites=3, colluding=1, rounds=3, quorum=3, links=LINKS))
    found = world._make(world.sites[0])
    found.handle(Started(), 0.0, os.urandom(64))
    return found


def test_a_machine_that_has_stopped_does_nothing_more(machine):
    assert machine.handle(Tick(), 1.0, os.urandom(64)) != []
    machine.stopped = True
    for event in (Started(), Tick()):
        assert machine.handle(event, 2.0, os.urandom(64)) == []


@pytest.mark.parametrize(("ahead", "stops"), [(0, False), (1, True)])
def test_a_frame_of_a_round_to_come_with_its_own_signature_stops_a_site(machine, ahead, stops):
    """A frame of a completed round may be its own, sent back by a neighbour."""
    machine.attempt, machine.phase = SimpleNamespace(number=1, members=(0, 1), digest=b"a"), "run"
    machine.saved["sign/1"], machine.scope = b"1", bytes(32)
    content = encode(JOB, Slot(Kind.MESSAGE, 1, machine.completed[1] + ahead, 0), machine.scope)
    frame = machine.read(identity(0).seal(content))
    machine._own_frame(frame, b"bytes")
    assert machine.stopped is stops


@pytest.mark.parametrize("step", ["_commit", "_send_masked", "_send_plain"])
def test_a_site_that_lost_its_keys_asks_for_an_attempt_that_no_site_has_seen(machine, monkeypatch, step):
    """The noise of a lost share is never drawn again under the pads of the same attempt."""
    monkeypatch.setattr(machine, "_commits", lambda t: {0: b""})
    machine.keys = None
    machine.phase, machine.number, machine.seen = "run", 3, 5
    machine.volatile.pop("y", None)
    getattr(machine, step)(1)
    assert (machine.phase, machine.number) == ("meet", 6)


@pytest.mark.parametrize(("method", "most"), [("masked", 24), ("penalty", 64)])
def test_a_run_of_too_many_attempts_stops_before_its_site_is_charged_again(method, most):
    """A hello has room for the charges of 64 attempts, so that a site with more could not say hello again."""
    world = World(Plan(seed=1, sites=3, colluding=1, rounds=3, quorum=3, links=LINKS, method=method))
    found = world._make(world.sites[0])
    found.handle(Started(), 0.0, os.urandom(64))
    found.phase, found.number, found.keys = "run", most + 1, RoundKeys(most + 1, 1, {})
    found.node = found.method.attempt((0, 1, 2), 0, 1.0)
    found.past = {k: Past(k, (0, 1, 2), 0, 1e-9, 0) for k in range(1, most + 1)}
    (found._commit if method == "masked" else found._send_plain)(1)
    (stop,) = (effect for effect in found.effects if isinstance(effect, Stop))
    assert stop.reason is Reason.LEFT_ALONE and f"was charged in {most} attempts" in stop.text
    assert not any(isinstance(effect, StoreRecords) and effect.releases for effect in found.effects)


def test_a_restarted_site_goes_on_in_the_attempt_that_it_was_in(machine, monkeypatch):
    monkeypatch.setattr(machine, "_forget_key", lambda: None)
    machine.attempt = SimpleNamespace(number=machine.number)
    machine._go_on()
    assert machine.phase == "run"
    machine.attempt = SimpleNamespace(number=machine.number - 1)
    machine.saved["hello"] = machine.saved.get("hello", b"")
    monkeypatch.setattr(machine, "publish", lambda data: None)
    machine._go_on()
    assert machine.phase == "meet"


def test_a_frame_that_a_question_names_a_thousand_times_is_signed_and_sent_once(machine, monkeypatch):
    """A question is short and a total is long, so repeated slots would multiply what a neighbour sends."""
    asked = []
    monkeypatch.setattr(machine, "_total", lambda slot: asked.append(slot) or [b"total"])
    machine.handle(QuestionAsked(pack_question([Slot(Kind.TOTAL, 1, 1, 0)] * 1000), 1), 1.0, os.urandom(32))
    assert len(asked) == 1


def test_a_result_that_was_taken_over_replaces_the_vectors_of_this_site_after_a_restart_too():
    """This site completed the last round with site 2; the others then ended the run without site 2."""
    world = World(Plan(seed=1, sites=3, colluding=1, rounds=3, quorum=3, links=LINKS, method="penalty"))
    found = world._make(world.sites[0])
    found.last = {0: b"old", 1: b"old", 2: b"old"}  # what the stored frames of the last round lead to
    taken = [found.seal(Kind.TOTAL, 2, i + 1, payload=b"new") for i in (0, 1)]
    found.saved["end"] = pack_frames(taken)
    found._come_back()
    assert found.last_vectors() == {0: b"new", 1: b"new"}


@pytest.mark.parametrize("why", ["new key", "expired"])
def test_a_known_frame_under_a_newer_certificate_replaces_a_copy_that_others_may_refuse(why):
    """Otherwise a neighbour hands on copies that another site refuses, and that site lacks the frame."""
    world = World(
        Plan(seed=1, sites=4, colluding=1, rounds=3, quorum=3, links=((1, 3), (0, 2), (1, 3), (0, 2)))
    )
    found = world._make(world.sites[0])
    content = encode(JOB, Slot(Kind.SIGN, 1, 0, 1), bytes(32))
    signers = (identity(1), identity(1, key=1)) if why == "new key" else (identity(1, 29.0), identity(1))
    old, new = (signer.seal(content) for signer in signers)
    der = signers[0].certificate
    odd = old.replace(der, der.replace(b"\xa0\x03\2\1\2", b"\xa0\x03\2\1\5"))  # X.509 has no such version
    steps = [(old, old, [(3,)]), (odd, old, []), (new, new, [(3,)]), (old, new, []), (odd, new, [])]
    for data, held, passed_on in steps:
        if data is new and why == "expired":
            found.accept(new, 1)
            assert found.board[Slot(Kind.SIGN, 1, 0, 1), bytes(32)][1] == old  # it is still valid
            world.clock[0] = 29.5 * 86400
        found.effects = []
        found.accept(data, 1)
        assert found.board[Slot(Kind.SIGN, 1, 0, 1), bytes(32)][1] == held
        assert [effect.to for effect in found.effects if isinstance(effect, SendFrame)] == passed_on


@pytest.mark.parametrize("kind", [Kind.HELLO, Kind.SIGN, Kind.COMMIT, Kind.MESSAGE])
def test_a_forgotten_signature_makes_a_site_say_at_least(machine, kind):
    """A neighbour sends back a frame that this site signed before its state was restored."""
    content = encode(JOB, Slot(kind, 1, 0, 0), b"s" * 32)
    known = [
        machine.stored("hello"),
        *(machine.read(machine.seal(kind, 1)) for kind in (Kind.DONE, Kind.PROPOSE)),
    ]
    for frame in [*known, machine.read(identity(0, key=1).seal(content))]:  # the last one is from a thief
        machine._own_frame(frame, b"bytes")
        assert not machine.lost
    machine.effects = []
    machine._own_frame(machine.read(identity(0).seal(content)), b"bytes")
    assert machine.lost
    (stored,) = (effect for effect in machine.effects if isinstance(effect, StoreRecords))
    assert stored.records["lost"]


def test_a_site_asks_for_hellos_that_it_may_have_forgotten(machine):
    own = [Slot(Kind.HELLO, number, 0, 0) for number in (1, 2, 3)]
    machine.number = 3
    asked = []
    for ticks in range(12):
        machine.now = machine.entered + ticks * 1.5
        if found := machine.forgotten():
            assert found == own
            asked.append(ticks)
    assert asked == [0, 1, 2, 4, 8]  # it repeats the question less and less often
    machine.entered, machine.lost = machine.now, True
    assert machine.forgotten() == []


def test_a_neighbour_shows_the_hello_that_a_restored_site_has_forgotten(machine):
    """The neighbour has it on disk, even if it also knows a newer hello of the same number."""
    old, new = (
        identity(1).seal(encode(JOB, Slot(Kind.HELLO, 1, 0, 1), payload=bytes([k]) * 200)) for k in (1, 2)
    )
    machine.saved["attempt/1"] = bytes(6) + pack_frames([old])
    machine.keep(machine.read(new), new)
    asked = [Slot(0, 1, 0, 1), Slot(Kind.HELLO, 1, 0, 1), Slot(Kind.HELLO, 1, 7, 1)]
    effects = machine.handle(QuestionAsked(pack_question(asked), 1), 1.0, os.urandom(32))
    assert [effect.data for effect in effects] == [new, old]


@pytest.mark.parametrize(
    "wrong", [b"", identity(1).certificate.replace(b"\xa0\x03\2\1\2", b"\xa0\x03\2\1\5")]
)
def test_a_message_that_was_set_aside_with_an_odd_certificate_is_replaced_by_the_valid_copy(machine, wrong):
    slot, scope = Slot(Kind.MESSAGE, 1, 1, 1), b"s" * 32
    content = encode(JOB, slot, scope)
    odd, valid = content + wrong + identity(1).sign(content + wrong), identity(1).seal(content)
    machine.keep(machine.read(odd), odd)
    machine.accept(valid, 1)
    assert machine.board[slot, scope][1] == valid


def test_a_site_with_many_hellos_of_its_own_in_memory_does_not_count_itself_as_flooding(machine, monkeypatch):
    """Otherwise it would refuse the hello that shows that its state was restored."""
    monkeypatch.setattr(core, "MOST_HELD", 20)
    for number, site in [*((k, 0) for k in range(1, 18)), *((k, 1) for k in range(1, 5))]:
        data = identity(site).seal(encode(JOB, Slot(Kind.HELLO, number, 0, site)))
        machine.keep(machine.read(data), data)
    with pytest.raises(FrameRefused, match=r"s1 has sent more messages .frames. than a run needs"):
        machine._check_slot(Slot(Kind.HELLO, 5, 0, 1))
    machine._check_slot(Slot(Kind.HELLO, 18, 0, 0))


def test_a_site_that_signs_asks_for_its_hellos_of_attempts_that_it_does_not_know(machine):
    past = [Past(k, members, 0, 1.0, 1) for k, members in ((1, (0, 1)), (2, (1, 2)), (3, (0, 2)))]
    machine.saved["sign/3"] = b"1"
    assert machine.unsigned(past) == {1}
