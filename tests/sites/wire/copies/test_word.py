"""What proves to a process that a copy of it is running, and what does not, whoever shows it."""

from types import SimpleNamespace

import pytest

from taciturn.sites.wire.copies import askers as askers_module
from taciturn.sites.wire.copies.askers import MOST_SEEN, SEEN, Askers
from taciturn.sites.wire.copies.word import HERE, MOST_MET, Files, Here, read_word
from taciturn.sites.wire.form import HELLO
from taciturn.sites.wire.frame import encode


def process(key=b"k", files=Files.AT_HOME):
    """A process of the site whose signatures are 64 times its key; its neighbours have others."""

    def seal(numbers, common):
        frame = encode(job=bytes(32), t=HELLO, sender=0, message=numbers, common=common, attempt=HERE)
        return frame + 64 * key

    return Here(seal, lambda frame: frame.signature == 64 * b"k", lambda: files)


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
    forged = Here(liar._seal, lambda frame: True, lambda: Files.AT_HOME)
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


def meet(neighbour, first, second):
    """Both ask until each has proved the other."""
    for asker in (first, second, first, second, first, second):
        ask(asker, neighbour)


def test_each_learns_how_the_files_of_the_other_stand(clock):
    original, copy = process(), process(files=Files.MOVED)
    meet(Askers(["alpha"]), original, copy)
    assert original.proved == {Files.MOVED} and copy.proved == {Files.AT_HOME}
    meet(Askers(["alpha"]), original, process())
    assert original.proved == {Files.MOVED, Files.AT_HOME}  # one that is moved does not hide another
    original.renew()
    assert original.proved == set()


def test_a_copy_that_was_vouched_for_says_so_in_its_next_word():
    stands = [Files.MOVED]
    own = Here(process()._seal, lambda frame: True, lambda: stands[0])
    before = own.word()
    assert own.word() == before and read_word(before)[0].files is Files.MOVED
    stands[0] = Files.AT_HOME
    assert read_word(own.word())[0] == read_word(before)[0]._replace(files=Files.AT_HOME)


def test_a_word_that_does_not_say_how_its_files_stand_or_says_what_nobody_knows_is_of_files_unknown(clock):
    """Those of releases before and after this one; they are counted and handed on alike."""
    for common in (bytes(32), b"\3" + bytes(31), b"\1" * 32):
        own, other = process(), process()
        other._seal = lambda numbers, _, seal=other._seal, common=common: seal(numbers, common)
        assert read_word(other.word())[0].files is Files.UNKNOWN
        meet(Askers(["alpha"]), own, other)
        assert own.proved == {Files.UNKNOWN} and other.proved == {Files.AT_HOME}


def test_a_word_of_this_release_is_one_for_those_that_know_nothing_of_files():
    """They read the three numbers of 8 bytes, and look at `common` no more than at `before`."""
    _, frame = read_word(process(files=Files.MOVED).word())
    assert (frame.attempt, frame.t, len(frame.message)) == (HERE, HELLO, 24)


def test_nobody_lowers_the_original_by_words_that_are_old_or_its_own(clock):
    """A neighbour shows each word that it ever saw: those of a copy from before this number, and its own."""
    neighbour, original, copy = Askers(["alpha"]), process(), process(files=Files.MOVED)
    meet(neighbour, original, copy)
    kept = [copy.word(), original.word()]
    original.renew()
    kept.append(original.word())
    for word in kept:
        original.shown(word)
    assert original.proved == set()
    copy.renew()
    copy.shown(kept[1])  # the original signed the number before
    assert copy.proved == set()
