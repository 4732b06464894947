"""Reactions of a site's state machine that do not show in the result of a simulated run."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from tools.simulation.world import Plan, World

from taciturn.sites.protocol.events import Started, Tick
from taciturn.sites.protocol.frames import Kind


@pytest.fixture
def machine():
    links = ((1, 2), (0, 2), (0, 1))
    world = World(Plan(seed=1, sites=3, colluding=1, rounds=3, quorum=3, links=links))
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
