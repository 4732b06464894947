"""What proves to a process that a copy of it is running, and what does not, whoever shows it."""

from types import SimpleNamespace

import pytest

from taciturn.sites.wire.copies import askers as askers_module
from taciturn.sites.wire.copies.askers import MOST_SEEN, SEEN, Askers
from taciturn.sites.wire.copies.word import HERE, MOST_MET, Here, read_word
from taciturn.sites.wire.form import HELLO
from taciturn.sites.wire.frame import encode


def process(key=b"k"):
    """A process of the site whose signatures are 64 times its key; its neighbours have others."""

    def seal(numbers):
        return encode(job=bytes(32), t=HELLO, sender=0, message=numbers, attempt=HERE) + 64 * key

    return Here(seal, lambda frame: frame.signature == 64 * b"k")


@pytest.fixture
def clock(monkeypatch):
    """The neighbour's."""
    fake = SimpleNamespace(now=100.0)
    monkeypatch.setattr(askers_module.time, "monotonic", lambda: fake.now)
    return fake


def ask(asker, neighbour):
    """One question: how many processes the neighbour counts, and the word of another is shown."""
    count, word = neighbour.note("alpha", asker.word())
    if word:
        asker.shown(word)
    return count


def test_two_processes_that_ask_prove_each_other(clock):
    neighbour, first, second = Askers(["alpha"]), process(), process()
    assert ask(first, neighbour) == 1
    assert ask(second, neighbour) == 2 and not second.proved  # it was shown the first, which may be gone
    assert ask(first, neighbour) == 2 and not first.proved
    assert ask(second, neighbour) == 2 and not second.proved
    assert ask(first, neighbour) == 2 and first.proved  # the second has signed its number meanwhile
    assert ask(second, neighbour) == 2 and second.proved


def test_a_process_that_was_killed_proves_nothing(clock):
    neighbour, old, new = Askers(["alpha"]), process(), process()
    ask(old, neighbour)
    for _ in range(3):
        assert ask(new, neighbour) == 2
        clock.now += 1.0
    clock.now += SEEN
    assert ask(new, neighbour) == 1 and not new.proved


def test_what_was_signed_before_this_process_asked_anew_proves_nothing(clock):
    """A neighbour that kept a word shows it again and again."""
    neighbour, first, second = Askers(["alpha"]), process(), process()
    for asker in (first, second, first, second, first):
        ask(asker, neighbour)
    kept = second.word()
    assert first.proved
    first.renew()
    for _ in range(3):
        first.shown(kept)
        first.word()
    assert not first.proved


def test_who_is_shown_somebody_new_should_show_itself_again_but_not_for_ever():
    own = process()
    other = process()
    assert own.shown(other.word()) and not own.shown(other.word())
    assert sum(own.shown(process().word()) for _ in range(3 * MOST_MET)) == MOST_MET - 1
    own.renew()
    assert own.shown(other.word())


def test_neither_its_own_word_nor_one_of_another_key_nor_garbage_proves_anything():
    own, liar = process(), process(key=b"l")
    liar.shown(own.word())  # not believed there; so it makes its own
    forged = Here(liar._seal, lambda frame: True)
    forged.shown(own.word())
    assert read_word(forged.word())[0].other == read_word(own.word())[0].fresh
    for shown in (own.word(), forged.word(), liar.word(), b"", b"garbage", own.word()[:-1]):
        own.shown(shown)
        assert not own.proved


def test_a_neighbour_counts_few_processes_and_those_of_its_neighbours_alone(clock):
    neighbour = Askers(["alpha"])
    counts = [ask(process(), neighbour) for _ in range(2 * MOST_SEEN)]
    assert max(counts) == MOST_SEEN
    assert neighbour.note("stranger", process().word()) == (0, b"")
    assert Askers(["alpha"]).note("alpha", b"x" * 10**6) == (0, b"")
