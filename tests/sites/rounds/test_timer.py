"""The driver's timer."""

from __future__ import annotations

import queue
import time
from collections import deque
from types import SimpleNamespace

import pytest

from taciturn.core.errors import SiteError
from taciturn.sites.protocol.events import Heard, Leave, Started, Tick
from taciturn.sites.rounds import driver as module
from taciturn.sites.rounds.driver import SiteDriver


def test_a_neighbour_that_sends_without_pause_does_not_hold_up_the_timer():
    """Without ticks, a site would never continue without a silent member."""
    events = queue.SimpleQueue()
    for _ in range(3):
        events.put(Heard(b"garbage", 1))
    setup = SimpleNamespace(tick=60.0)
    driver = SimpleNamespace(
        soon=deque(), events=events, timer=time.monotonic() - 1.0, protocol=SimpleNamespace(setup=setup)
    )
    assert SiteDriver._next(driver) == Tick()
    assert SiteDriver._next(driver) == Heard(b"garbage", 1)
    assert driver.timer > time.monotonic() + 30.0


def test_ticks_that_take_longer_than_their_interval_do_not_hold_up_received_frames(monkeypatch):
    """A loaded machine must not only ask for frames: it must also read the answers."""
    now, handled = [0.0], []

    def handle(event, *_):
        handled.append(event)
        now[0] += 10.0  # every event takes longer than the interval of the ticks
        return [Leave()] if isinstance(event, Heard) or len(handled) > 5 else []

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    protocol = SimpleNamespace(setup=SimpleNamespace(tick=0.5), completed=(0, 0), handle=handle)
    looks = SimpleNamespace(look=lambda **_: None)
    events = queue.SimpleQueue()
    events.put(Heard(b"frame", 1))
    unchanged = SimpleNamespace(read_changed=lambda: None)
    ready = SimpleNamespace(trust=None)
    driver = SiteDriver(ready, None, None, looks, protocol, events, None, looks, unchanged, None)
    with pytest.raises(SiteError, match="without a result"):
        driver.run(None)
    assert handled == [Started(), Tick(), Heard(b"frame", 1)]
