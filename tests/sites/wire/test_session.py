"""Which questions a session answers, and which answers it takes."""

from types import SimpleNamespace

import pytest

pytest.importorskip("zenoh")

from taciturn.sites.wire.config import key_of_recall
from taciturn.sites.wire.form import CHECK
from taciturn.sites.wire.session import _POSITION, Recalled, Session


class Query:
    """One question, and what was answered."""

    payload = None

    def __init__(self):
        self.key_expr, self.replies = key_of_recall("here", "there"), []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def reply(self, key, data, *, express):
        self.replies.append(data)


def session(attempt):
    """One whose mailbox holds a frame of `there`, without a network."""
    made = object.__new__(Session)
    made._site = SimpleNamespace(neighbours=("there",))
    made._mailbox = SimpleNamespace(attempt=attempt, t=3, newest=lambda name: b"frame", wake=lambda: None)
    made._proof, made.vouches, made.answered, made.recalled = None, lambda name: True, set(), {}
    made.here = None
    made._processes = lambda name, shown: (1, b"")
    return made


def test_a_check_knows_nothing_of_the_run_and_says_nothing_of_it():
    """Or a neighbour whose state was put back would hear that nothing of it is missing."""
    running, checking = Query(), Query()
    session(0)._answer(running)
    session(CHECK)._answer(checking)
    assert [data[_POSITION.size :] for data in running.replies] == [b"frame"]
    assert checking.replies == []


def test_a_site_that_may_have_forgotten_frames_of_a_neighbour_says_so_to_that_one():
    query, knowing, asking = Query(), session(0), session(0)
    knowing.vouches = lambda name: name != "there"
    knowing._answer(query)
    asking._sort_recalled("there", query.replies[0], asking.recalled)
    assert asking.recalled["there"] == Recalled(3, 1, b"frame", vouches=False)


def test_an_answer_hands_on_the_word_of_another_process_before_the_frame():
    query, knowing, asking, words = Query(), session(0), session(0), []
    knowing._processes = lambda name, shown: (2, b"its word")
    knowing._answer(query)
    asking.here, asking.ask_recall = SimpleNamespace(shown=lambda word: not words.append(word)), words.append
    asking._sort_recalled("there", query.replies[0], asking.recalled)
    assert asking.recalled["there"] == Recalled(3, 2, b"frame") and words == [b"its word", "there"]


def test_an_answer_of_a_check_is_not_taken_for_one_of_the_run():
    asking = session(0)
    asking._sort_recalled("there", _POSITION.pack(CHECK, 3, 1), asking.recalled)
    assert asking.recalled == {}
    asking._sort_recalled("there", _POSITION.pack(0, 3, 1) + b"frame", asking.recalled)
    assert asking.recalled["there"].frame == b"frame"
