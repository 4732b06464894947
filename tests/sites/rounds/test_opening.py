"""Who may vouch for a state that was put back, what a site may have forgotten of its neighbours, and when a
site believes that there is a copy of it."""

from types import SimpleNamespace

import pytest

pytest.importorskip("zenoh")

from support.sitework import frame, sites
from taciturn.errors import NeighbourFailed, StateLost
from taciturn.sites.rounds.driver import doubted, knows
from taciturn.sites.rounds.opening import _look_at_answers, be_vouched_for, recall
from taciturn.sites.wire.copies.word import Files
from taciturn.sites.wire.form import form_of
from taciturn.sites.wire.mailbox import Forgotten, Mailbox
from taciturn.sites.wire.refusals import Refusals
from taciturn.sites.wire.session import Recalled
from taciturn.sites.wire.trust import load_trust
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


@pytest.mark.parametrize("shown", [(2, 4), (4, 2), (None, 4), (4, None)])
@pytest.mark.parametrize("early", [False, True])
def test_what_has_left_is_counted_from_the_newest_frame_that_any_neighbour_shows(tmp_path, shown, early):
    """Whoever was first to answer, and whatever of an early end is shown beside it."""
    made = sites(tmp_path)
    asking = exchange(*(Recalled(5, 1, b"" if t is None else frame(made[0], t)) for t in shown))
    if early and None in shown:
        asking.session.recalled[f"site-{shown.index(None)}"] = Recalled(5, 1, frame(made[0], 5, attempt=7))
    trust = load_trust(made[0].path(made[0].file.keys.authority))
    asking.mailbox = Mailbox(form_of(made[0].job), "site-0", trust, Refusals(), 1)
    asking.store.frame = lambda t: None
    with pytest.raises(Forgotten) as raised:
        _look_at_answers(asking)
    assert raised.value.letter.frame.t == 4 and raised.value.holder == f"site-{shown.index(4)}"


NOBODY = frozenset()


class Asking:
    """A site with one neighbour, which answers each question with the next of these counts of processes.

    proves : the files of the copies that have signed the number of this site where there are two, or more.
    drawn : how often it has drawn a number.
    """

    def __init__(self, counts, *, proves=(), moved=False, patience=60.0):
        self.left, self.proves, self.links, self.recalled, self.clock = list(counts), proves, 0, {}, 0.0
        self.ready = SimpleNamespace(site=SimpleNamespace(neighbours=("beta",)))
        self.here, self.drawn = SimpleNamespace(proved=NOBODY, renew=self.renew), 0
        self.session, self.mailbox, self.patience = self, SimpleNamespace(t=5), patience
        self.store = SimpleNamespace(moved=moved)

    def renew(self):
        self.here.proved, self.drawn = NOBODY, self.drawn + 1

    def missing(self):
        return []

    def ask_where(self):
        pass

    def ask_recall(self, name):
        count = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        self.recalled[name] = Recalled(5, count, b"")
        self.here.proved |= frozenset(self.proves) if count > 1 else NOBODY

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
    site = asking([2], proves=[Files.UNKNOWN])
    with pytest.raises(StateLost, match="two processes with the name and key of this site"):
        recall(site)
    assert site.clock == 0.0


HOME, MOVED, UNKNOWN = Files.AT_HOME, Files.MOVED, Files.UNKNOWN


@pytest.mark.parametrize(
    ("moved", "proves"),
    [
        (False, [HOME]),
        (False, [UNKNOWN]),
        (False, [MOVED, HOME]),
        (False, [MOVED, UNKNOWN]),
        (True, [MOVED]),
        (True, [UNKNOWN]),
    ],
)
def test_of_two_that_claim_the_same_standing_or_do_not_say_it_whoever_sees_the_other_stops(
    asking, moved, proves
):
    site = asking([2, 1], proves=proves, moved=moved)
    with pytest.raises(StateLost, match="a copy of it is running"):
        recall(site)
    assert site.clock == 0.0


@pytest.mark.parametrize("proves", [[HOME], [HOME, MOVED]])
def test_a_copy_stops_at_once_for_its_original_and_says_that_it_runs(asking, proves):
    site = asking([2, 1], proves=proves, moved=True)
    with pytest.raises(StateLost, match="the original is running"):
        recall(site)
    assert site.clock == 0.0


def test_the_original_waits_for_its_copy_to_be_gone_and_asks_all_anew(asking):
    site = asking([2] * 10 + [1], proves=[MOVED])
    assert recall(site) == 0 and site.clock > 4.0
    assert site.drawn == 2  # nobody has signed the second number
    assert site.here.proved == NOBODY


def test_a_copy_that_comes_back_while_the_original_asks_anew_is_waited_for_again(asking):
    site = asking([2, 1, 2, 2, 1], proves=[MOVED])
    assert recall(site) == 0 and site.drawn == 3


def test_a_copy_that_was_vouched_for_meanwhile_stops_the_original(asking):
    """Now both files are where they were written, as far as anybody knows."""
    site = asking([2], proves=[MOVED])
    wait = site.pass_time

    def pass_time(seconds):
        wait(seconds)
        site.proves = [HOME]

    site.pass_time = pass_time
    with pytest.raises(StateLost, match="a copy of it is running"):
        recall(site)
    assert 0.0 < site.clock < 2.0


def test_the_original_waits_no_longer_than_its_patience_for_a_copy_that_does_not_stop(asking):
    site = asking([2], proves=[MOVED])
    with pytest.raises(NeighbourFailed, match=r"beta sees two .* has shown itself and does not stop"):
        recall(site)
    assert site.clock >= site.patience


def test_an_original_that_is_behind_its_copy_stops_though_its_files_are_where_they_were(asking):
    """What a neighbour holds is looked at while it waits."""
    site = asking([2], proves=[MOVED])
    letter = SimpleNamespace(frame=SimpleNamespace(attempt=0, t=6, digest=b"another"))
    site.mailbox.offer_recalled = lambda name, frame: letter
    site.store.frame, site.answered = lambda t: None, set()
    site.ready.site.file = SimpleNamespace(patience=0.0)
    ask = site.ask_recall

    def ask_recall(name):
        ask(name)
        site.recalled[name] = Recalled(6, 2, b"frame")

    site.ask_recall = ask_recall
    with pytest.raises(Forgotten):
        recall(site)
    assert site.here.proved == {MOVED} and site.clock == 0.0
