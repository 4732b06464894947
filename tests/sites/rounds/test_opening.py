"""Who may vouch for a state that was put back, what a site may have forgotten of its neighbours, and when a
site believes that there is a copy of it."""

from types import SimpleNamespace

import pytest

pytest.importorskip("zenoh")

from taciturn.errors import NeighbourFailed, StateLost
from taciturn.sites.rounds.driver import doubted, knows
from taciturn.sites.rounds.opening import be_vouched_for, recall
from taciturn.sites.wire.session import Recalled
from taciturn.sites.wire.waiting import Waiting


def exchange(*recalled, t=5, moved=True):
    """A site that waits for round t, and has heard these answers."""
    answers = {f"site-{i}": answer for i, answer in enumerate(recalled)}
    store = SimpleNamespace(moved=moved)
    store.stay = lambda vouched: setattr(store, "moved", not vouched)
    site = SimpleNamespace(neighbours=tuple(answers), file=SimpleNamespace(patience=0.0))
    return SimpleNamespace(
        store=store,
        session=SimpleNamespace(recalled=answers, answered=set(answers)),
        mailbox=SimpleNamespace(t=t),
        ready=SimpleNamespace(site=site),
    )


GOOD = Recalled(5, 1, b"frame")
FORGETFUL = Recalled(5, 1, b"frame", vouches=False)
DELETED = Recalled(-1, 1, b"")  # it begins anew, though this site has heard its round 4


@pytest.mark.parametrize("answers", [[GOOD], [FORGETFUL, GOOD], [DELETED, Recalled(4, 1, b"frame")]])
def test_one_neighbour_that_forgot_nothing_is_enough(answers):
    asking = exchange(*answers)
    be_vouched_for(asking)
    assert not asking.store.moved


@pytest.mark.parametrize(
    "answers", [[FORGETFUL], [DELETED], [FORGETFUL, DELETED], [Recalled(3, 1, b"frame")]]
)
def test_neighbours_that_forgot_something_vouch_for_nobody(answers):
    asking = exchange(*answers)
    with pytest.raises(StateLost, match="nobody can say what has left since"):
        be_vouched_for(asking)
    assert asking.store.moved
    be_vouched_for(exchange(*answers, moved=False))  # a state that is where it was written needs nobody


@pytest.mark.parametrize(
    ("whole", "moved", "said", "doubt"),
    [
        (True, False, 6, 3),  # what was in doubt before
        (False, False, 6, 7),
        (True, True, 6, 7),
        (False, False, 9, 9),  # there is no tenth round
    ],
)
def test_a_neighbour_is_one_round_ahead_at_most(whole, moved, said, doubt):
    ready = SimpleNamespace(run=SimpleNamespace(rounds=9))
    store = SimpleNamespace(moved=moved, frame=lambda t: b"hello")
    resumed = SimpleNamespace(state=SimpleNamespace(t=said - 1), frame=b"frame")
    arrivals = SimpleNamespace(whole=whole, doubt=3)
    assert doubted(ready, store, resumed, arrivals) == doubt


def test_a_site_that_never_said_hello_has_forgotten_nothing():
    store = SimpleNamespace(moved=False, frame=lambda t: None)
    assert doubted(None, store, None, SimpleNamespace(whole=False, doubt=0)) == 0


def test_a_doubt_is_over_with_the_next_frame():
    ready = SimpleNamespace(open_frame=lambda data: SimpleNamespace(t=int(data)))
    mailbox = SimpleNamespace(newest={"a": b"6", "b": b"7", "c": None}.get)
    assert [knows(ready, mailbox, name, 7) for name in "abc"] == [False, True, False]
    assert all(knows(ready, mailbox, name, 0) for name in "abc")


class Asking:
    """A site with one neighbour, which answers each question with the next of these counts of processes."""

    def __init__(self, counts, *, proves=False, patience=60.0):
        self.left, self.proves, self.links, self.recalled, self.clock = list(counts), proves, 0, {}, 0.0
        self.ready = SimpleNamespace(site=SimpleNamespace(neighbours=("beta",)))
        self.here = SimpleNamespace(proved=False, renew=lambda: setattr(self.here, "proved", False))
        self.session, self.mailbox, self.patience = self, SimpleNamespace(t=5), patience

    def missing(self):
        return []

    def ask_where(self):
        pass

    def ask_recall(self, name):
        count = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        self.recalled[name] = Recalled(5, count, b"")
        self.here.proved = self.proves and count > 1

    def waiting(self):
        nothing = lambda *_: ""  # noqa: E731
        return Waiting(self.patience, self.pass_time, lambda: 0, nothing, nothing, quiet=True)

    def pass_time(self, seconds):
        self.clock += seconds


@pytest.fixture
def asking(monkeypatch):
    def make(*args, **kwargs):
        made = Asking(*args, **kwargs)
        monkeypatch.setattr("taciturn.sites.wire.waiting.time.monotonic", lambda: made.clock)
        return made

    return make


def test_a_site_waits_as_long_as_a_starved_neighbour_sees_the_process_before_it(asking):
    """Far longer than a lease: what is gone at the neighbour's is a matter of its processor."""
    site = asking([2] * 80 + [1])
    assert recall(site) == 0 and site.clock > 30.0


def test_a_neighbour_that_says_so_for_ever_is_named_and_stops_nobody_for_good(asking):
    with pytest.raises(
        NeighbourFailed, match="beta sees two processes with the name and key of this site, it"
    ):
        recall(asking([2]))


def test_a_copy_that_has_signed_stops_the_site_at_once(asking):
    site = asking([2], proves=True)
    with pytest.raises(StateLost, match="two processes with the name and key of this site"):
        recall(site)
    assert site.clock == 0.0
