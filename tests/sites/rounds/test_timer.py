"""The driver's timer."""

from __future__ import annotations

import queue
import time
from collections import deque
from types import SimpleNamespace

from taciturn.sites.protocol.events import Heard, Tick
from taciturn.sites.rounds.driver import SiteDriver


def test_a_neighbour_that_sends_without_pause_does_not_hold_up_the_timer():
    """Without ticks, a site would never continue without a silent member."""
    events = queue.Queue()
    for _ in range(3):
        events.put(Heard(b"garbage", 1))
    setup = SimpleNamespace(tick=60.0)
    driver = SimpleNamespace(
        soon=deque(), events=events, timer=time.monotonic() - 1.0, protocol=SimpleNamespace(setup=setup)
    )
    assert SiteDriver._next(driver) == Tick()
    assert SiteDriver._next(driver) == Heard(b"garbage", 1)
    assert driver.timer > time.monotonic() + 30.0
