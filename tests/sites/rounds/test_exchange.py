"""What an exchange looks at, and in which order."""

from types import SimpleNamespace

import pytest

pytest.importorskip("zenoh")

from taciturn.sites.rounds.exchange import Exchange


def test_what_came_before_the_last_frame_is_looked_at_before_the_site_goes_on():
    """Both come between two looks: a frame that contradicts an old one, then the last that was missing."""
    old, letters = [], []

    def missing():
        old.append("contradicts")
        letters.append("the last")
        return []

    mailbox = SimpleNamespace(
        t=9, to_pass_on=lambda: [], missing=missing, look_back=lambda heard: letters.append(old.copy())
    )
    exchange = object.__new__(Exchange)
    exchange.mailbox, exchange.main = mailbox, None
    exchange.session = SimpleNamespace(reopen_after_crowd=lambda: None, early=None)
    exchange.store = SimpleNamespace(frames_heard=None)
    exchange.ready = SimpleNamespace(form=SimpleNamespace(rounds=5))
    assert exchange.missing() == [] and letters == ["the last", ["contradicts"]]
