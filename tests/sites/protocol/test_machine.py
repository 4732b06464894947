"""Reactions of a site's state machine that do not show in the result of a simulated run."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from tools.simulation.world import Plan, World

from taciturn.sites.protocol.events import QuestionAsked, Reason, Started, Stop, StoreRecords, Tick
from taciturn.sites.protocol.frames import Kind, Slot, pack_frames, pack_question
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
    frame = SimpleNamespace(kind=Kind.MESSAGE, attempt=1, scope=machine.scope, t=machine.completed[1] + ahead)
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
