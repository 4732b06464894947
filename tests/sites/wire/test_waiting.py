"""Waiting: ask again, name the silent, stop when patience ends."""

import logging
import time

import pytest

from taciturn.errors import SiteError
from taciturn.sites.wire import waiting as module
from taciturn.sites.wire.waiting import Waiting


class World:
    """A clock that only waiting moves."""

    def __init__(self, monkeypatch, patience=100.0):
        self.now, self.wall, self.links = 1000.0, 5e8, 0
        self.asked, self.noted = [], []
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(module.time, "time", lambda: self.wall)
        self.waiting = Waiting(
            patience, self.pause, lambda: self.links, self.note, lambda name: f"{name}: why"
        )
        self.events = {}

    def pause(self, seconds):
        due = [at for at in self.events if self.now < at <= self.now + seconds]
        self.now = min(due) if due else self.now + max(seconds, 1e-6)
        for at in [at for at in self.events if at <= self.now]:
            self.events.pop(at)()

    def note(self, names, since):
        self.noted.append((list(names), since))

    def ask(self, names):
        self.asked.append((round(self.now - 1000.0, 3), list(names)))


def test_questions_come_further_and_further_apart(monkeypatch):
    world, left = World(monkeypatch), ["b"]
    world.events[1030.0] = left.clear
    assert world.waiting.until(lambda: list(left), world.ask, "round 1")
    assert [at for at, _ in world.asked] == [0.5, 1.5, 3.5, 7.5, 12.5, 17.5, 22.5, 27.5]


def test_nobody_is_asked_while_frames_come_in(monkeypatch):
    world, left = World(monkeypatch), list("bcdefg")
    for k in range(5):
        world.events[1000.4 + 0.4 * k] = left.pop
    world.events[1004.0] = left.clear
    assert world.waiting.until(lambda: list(left), world.ask, "round 1")
    assert world.asked == [(2.5, ["b"]), (3.5, ["b"])]


def test_a_new_link_is_asked_at_once(monkeypatch):
    world, left = World(monkeypatch), ["b"]

    def link():
        world.links += 1

    world.events[1009.0] = link
    world.events[1009.3] = left.clear
    assert world.waiting.until(lambda: list(left), world.ask, "round 1")
    assert 9.05 in [at for at, _ in world.asked]


def test_the_silent_are_named_with_the_time_and_the_reason(monkeypatch, caplog):
    world = World(monkeypatch)
    with caplog.at_level(logging.WARNING), pytest.raises(SiteError) as stopped:
        world.waiting.need(lambda: ["b", "c"], world.ask, "round 7")
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(5e8))
    assert f"b, c silent since {since} (round 7); stopped after 100 s" in str(stopped.value)
    assert "run the same command to go on" in str(stopped.value)
    assert world.noted[0] == (["b", "c"], 5e8)
    assert f"waiting for b, c since {since} (round 7): b: why; c: why" in caplog.text
    assert len(caplog.records) == 2  # after 10 s and 20 s, then 10 times as long


def test_a_clock_that_is_set_changes_nothing(monkeypatch):
    world = World(monkeypatch)
    world.events[1050.0] = lambda: setattr(world, "wall", 0.0)
    assert not world.waiting.until(lambda: ["b"], world.ask, "round 1")
    assert world.now == pytest.approx(1100.0, abs=1e-3)
