"""The mailbox keeps the neighbours' frames of this round and the next, and nothing else."""

import logging
import os
import random
import threading

import numpy as np
import pytest

from support.sitework import frame, sites
from taciturn.sites.files.keys import Authority
from taciturn.sites.trial.rehearsal import issue
from taciturn.sites.wire.form import HELLO, READY, form_of
from taciturn.sites.wire.frame import decode
from taciturn.sites.wire.mailbox import Caught, Forgotten, Mailbox
from taciturn.sites.wire.refusals import Refusals
from taciturn.sites.wire.trust import load_identity, load_trust


@pytest.fixture
def ring(tmp_path):
    return sites(tmp_path)


def box(made, t=1):
    refusals = Refusals()
    trust = load_trust(made[0].path(made[0].file.keys.authority))
    return Mailbox(form_of(made[0].job), "site-0", trust, refusals, t), refusals


def kinds(refusals):
    return {kind for _, kind in refusals.counts()}


def test_frames_are_taken_in_the_order_of_the_sites(ring):
    mailbox, refusals = box(ring)
    assert mailbox.missing() == ["site-1", "site-2"]
    mailbox.offer("site-2", 1, frame(ring[2], 1, [2.0, 0, 0, 0]))
    assert mailbox.missing() == ["site-1"]
    mailbox.offer("site-1", 1, frame(ring[1], 1, [1.0, 0, 0, 0]))
    assert mailbox.missing() == []
    taken = mailbox.take()
    assert list(taken) == [1, 2] and [letter.vector[0] for letter in taken.values()] == [1.0, 2.0]
    assert mailbox.t == 2 and not refusals.counts()


def test_a_neighbour_may_be_one_round_ahead_and_no_more(ring):
    mailbox, refusals = box(ring)
    mailbox.offer("site-1", 2, frame(ring[1], 2))
    mailbox.offer("site-2", 3, frame(ring[2], 3))
    assert refusals.counts() == {("site-2", "future"): 1}
    mailbox.offer("site-1", 1, frame(ring[1], 1))
    mailbox.offer("site-2", 1, frame(ring[2], 1))
    mailbox.take()
    assert mailbox.missing() == ["site-2"]


def test_the_same_frame_again_is_no_news_and_another_one_ends_the_run(ring):
    mailbox, refusals = box(ring)
    first, second = frame(ring[1], 1, [1.0, 0, 0, 0]), frame(ring[1], 1, [9.0, 0, 0, 0])
    for _ in range(3):
        mailbox.offer("site-1", 1, first)
    assert mailbox.missing() == ["site-2"]
    mailbox.offer("site-1", 1, second)
    with pytest.raises(Caught) as caught:
        mailbox.missing()
    assert (caught.value.owner, caught.value.first.data, caught.value.second.data) == (
        "site-1",
        first,
        second,
    )
    assert not refusals.counts()


def test_the_same_frame_under_a_renewed_certificate_is_the_same_frame(ring):
    mailbox, refusals = box(ring)
    first = frame(ring[1], 1, [1.0, 0, 0, 0])
    folder = ring[1].folder / "renewed"
    folder.mkdir()
    issue(Authority.load(ring[1].folder.parent), folder, "site-1", ["127.0.0.1"])
    trust = load_trust(ring[0].path(ring[0].file.keys.authority))
    renewed = load_identity(folder / "site-1.key", folder / "site-1.pem", "site-1", trust)
    again = renewed.seal(decode(first, largest=100).content)
    assert again != first and decode(again, largest=100).digest == decode(first, largest=100).digest
    for data in (first, again, first):
        mailbox.offer("site-1", 1, data)
    assert mailbox.missing() == ["site-2"] and not refusals.counts()


def test_a_frame_that_does_not_follow_from_the_one_before_ends_the_run(ring):
    mailbox, _ = box(ring)
    first = frame(ring[1], 1)
    for j in (1, 2):
        mailbox.offer(f"site-{j}", 1, frame(ring[j], 1))
    mailbox.take()
    mailbox.offer("site-1", 2, frame(ring[1], 2, before=decode(first, largest=100).digest))
    mailbox.offer("site-2", 2, frame(ring[2], 2, before=bytes(32)))
    with pytest.raises(Caught) as caught:
        mailbox.find_doubts()
    assert caught.value.owner == "site-2" and [caught.value.first.frame.t, caught.value.second.frame.t] == [
        1,
        2,
    ]


def opened(ring, stamps=(1, 1, 1)):
    """A mailbox that holds everybody's hello, and the hellos."""
    mailbox, refusals = box(ring, t=HELLO)
    hellos = [frame(site, HELLO, message=hello(stamp)) for site, stamp in zip(ring, stamps, strict=True)]
    mailbox.know(hellos[0])
    for j in (1, 2):
        mailbox.offer(f"site-{j}", HELLO, hellos[j])
    mailbox.take()
    return mailbox, hellos, refusals


def hello(stamp):
    return stamp.to_bytes(8, "little") + bytes(32)


def digest(data):
    return decode(data, largest=100).digest


def test_who_holds_other_hellos_is_not_ready(ring):
    mailbox, hellos, _ = opened(ring)
    common = mailbox.common(READY)
    mailbox.offer("site-1", READY, frame(ring[1], READY, before=digest(hellos[1]), common=common))
    mailbox.offer("site-2", READY, frame(ring[2], READY, before=digest(hellos[2]), common=bytes(32)))
    assert mailbox.missing() == ["site-2"]
    mailbox.offer("site-2", READY, frame(ring[2], READY, before=digest(hellos[2]), common=common))
    assert mailbox.missing() == []


def test_a_later_hello_counts_until_the_run_begins(ring):
    mailbox, _, refusals = opened(ring, (1, 5, 1))
    for stamp in (7, 6):
        mailbox.offer("site-1", HELLO, frame(ring[1], HELLO, message=hello(stamp)))
    assert mailbox.letters(HELLO)[1].frame.message[0] == 7
    common = mailbox.common(READY)
    for j in (0, 1, 2):
        before = mailbox.letters(HELLO)[j].frame.digest
        ready = frame(ring[j], READY, before=before, common=common)
        mailbox.know(ready) if j == 0 else mailbox.offer(f"site-{j}", READY, ready)
    mailbox.take()
    mailbox.offer("site-1", HELLO, frame(ring[1], HELLO, message=hello(8)))
    mailbox.missing()
    assert refusals.counts() == {("site-1", "hello"): 1}


def test_who_holds_other_frames_of_a_round_that_everybody_has_is_doubted(tmp_path):
    ring = sites(tmp_path, job={"rounds": 1})
    mailbox, _ = box(ring, t=1)
    last = [frame(site, 1) for site in ring]
    mailbox.know(last[0])
    for j in (1, 2):
        mailbox.offer(f"site-{j}", 1, last[j])
    mailbox.take()
    for j, common in ((1, mailbox.common(2)), (2, bytes(32))):
        mailbox.offer(f"site-{j}", 2, frame(ring[j], 2, before=digest(last[j]), common=common))
    assert mailbox.find_doubts() == ["site-2"]


def test_a_frame_of_its_own_that_a_site_does_not_know_of_ends_the_run_for_it(ring):
    mailbox, _ = box(ring, t=5)
    mailbox.know(frame(ring[0], 5))
    mailbox.offer("site-1", 5, frame(ring[0], 5), owner="site-0")
    mailbox.missing()
    mailbox.offer("site-1", 6, frame(ring[0], 6), owner="site-0")
    with pytest.raises(Forgotten) as forgotten:
        mailbox.missing()
    assert forgotten.value.holder == "site-1" and forgotten.value.letter.frame.t == 6


def test_an_old_round_is_a_replay_unless_it_was_asked_for(ring):
    mailbox, refusals = box(ring, t=4)
    mailbox.offer("site-1", 2, frame(ring[1], 2), asked=True)
    assert not refusals.counts()
    mailbox.offer("site-1", 2, frame(ring[1], 2))
    assert kinds(refusals) == {"replay"}


def test_done_is_a_frame_without_a_message_after_the_last_round(ring):
    mailbox, refusals = box(ring, t=6)
    mailbox.offer("site-1", 6, frame(ring[1], 6, np.empty(0)))
    mailbox.offer("site-2", 6, frame(ring[2], 6, np.zeros(4)))
    mailbox.offer("site-2", 8, frame(ring[2], 8, np.empty(0)))
    assert mailbox.missing() == ["site-2"] and kinds(refusals) == {"length", "future"}


def test_last_frames_are_passed_on_and_believed_by_their_owners_signature(tmp_path):
    ring = sites(tmp_path, [(0, 1), (1, 2), (2, 3), (3, 0)])
    mailbox, refusals = box(ring)
    last = frame(ring[2], 5, [5.0, 0, 0, 0])
    mailbox.offer("site-1", 5, last, owner="site-2")
    assert mailbox.to_pass_on() == [] and mailbox.newest("site-2") == last  # site-3 hears site-2 itself
    mailbox.offer("site-1", 5, frame(ring[1], 5, sender=3), owner="site-3")
    mailbox.offer("site-3", 5, frame(ring[1], 4), owner="site-1")
    mailbox.offer("site-1", 4, frame(ring[2], 4), owner="site-2")
    mailbox.offer("nobody", 5, frame(ring[1], 5))
    assert refusals.counts() == {
        ("site-1", "name"): 1,
        ("site-3", "round"): 1,
        ("site-1", "owner"): 1,
        ("nobody", "stranger"): 1,
    }


def test_a_frame_is_passed_on_once_where_a_neighbour_does_not_hear_it_itself(tmp_path):
    path = sites(tmp_path, [(0, 1), (1, 2)])
    trust = load_trust(path[0].path(path[0].file.keys.authority))
    middle = Mailbox(form_of(path[0].job), "site-1", trust, Refusals(), HELLO)
    hello = frame(path[0], HELLO)
    for _ in range(2):
        middle.offer("site-0", HELLO, hello)
    assert middle.to_pass_on() == [(HELLO, "site-0", hello)] and middle.to_pass_on() == []


def test_a_hundred_thousand_bad_frames_change_nothing_and_are_logged_once_each(ring, caplog):
    mailbox, refusals = box(ring)
    honest = frame(ring[1], 1, [1.0, 2.0, 3.0, 4.0])
    rng = random.Random(os.urandom(16))
    with caplog.at_level(logging.WARNING, logger="taciturn.site"):
        for k in range(100_000):
            data = bytearray(honest)
            if k % 100:
                data[rng.randrange(58)] ^= 1 << rng.randrange(8)  # the header
            else:
                data[rng.randrange(58, len(data))] ^= 1 << rng.randrange(
                    8
                )  # past, message, certificate, signature
            mailbox.offer("site-1", 1, bytes(data))
    assert mailbox.missing() == ["site-1", "site-2"] and mailbox.t == 1
    assert sum(refusals.counts().values()) == 100_000
    assert len(caplog.records) == len(refusals.counts())
    mailbox.offer("site-1", 1, honest)
    assert mailbox.missing() == ["site-2"]


def test_waiting_ends_when_the_last_frame_arrives(ring):
    mailbox, _ = box(ring)
    mailbox.offer("site-2", 1, frame(ring[2], 1))
    timer = threading.Timer(0.05, mailbox.offer, ("site-1", 1, frame(ring[1], 1)))
    timer.start()
    mailbox.wait(30.0)
    timer.join()
    assert mailbox.missing() == []


def waits(mailbox, monkeypatch):
    """For how long a wait of 30 s would block, without doing so."""
    asked = []
    monkeypatch.setattr(mailbox._news, "wait", asked.append)
    mailbox.wait(30.0)
    return asked


def test_what_comes_between_the_look_and_the_wait_is_not_slept_through(ring, monkeypatch):
    mailbox, _ = box(ring)
    mailbox.offer("site-2", 1, frame(ring[2], 1))
    assert mailbox.missing() == ["site-1"]
    mailbox.offer("site-1", 1, frame(ring[1], 1))
    assert waits(mailbox, monkeypatch) == []
    assert waits(mailbox, monkeypatch) == [30.0]  # once


def test_a_frame_that_does_not_complete_the_round_wakes_nobody(ring, monkeypatch):
    mailbox, _ = box(ring)
    mailbox.offer("site-2", 1, frame(ring[2], 1))
    mailbox.offer("site-2", 2, frame(ring[2], 2))
    assert waits(mailbox, monkeypatch) == [30.0]
    mailbox.offer("site-1", 2, frame(ring[1], 2))
    assert waits(mailbox, monkeypatch) == [30.0]
    mailbox.offer("site-1", 1, frame(ring[1], 1))
    assert waits(mailbox, monkeypatch) == []
