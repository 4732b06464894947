"""The mailbox keeps the neighbours' frames of this round and the next, and nothing else."""

import logging
import os
import random
import threading

import numpy as np
import pytest

from support.sitework import frame, sites
from taciturn.sites.wire.mailbox import Mailbox
from taciturn.sites.wire.refusals import Refusals
from taciturn.sites.wire.trust import load_trust


@pytest.fixture
def ring(tmp_path):
    return sites(tmp_path)


def box(made, t=1):
    refusals = Refusals()
    trust = load_trust(made[0].path(made[0].file.keys.authority))
    return Mailbox(made[0].job, "site-0", trust, refusals, t), refusals


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


def test_the_same_bytes_again_are_no_news_and_other_bytes_are_refused(ring):
    mailbox, refusals = box(ring)
    first = frame(ring[1], 1, [1.0, 0, 0, 0])
    for _ in range(3):
        mailbox.offer("site-1", 1, first)
    assert not refusals.counts()
    mailbox.offer("site-1", 1, frame(ring[1], 1, [9.0, 0, 0, 0]))
    assert refusals.counts() == {("site-1", "twice"): 1}
    mailbox.offer("site-2", 1, frame(ring[2], 1))
    assert mailbox.take()[1].data == first


def test_an_old_round_is_a_replay_unless_it_was_asked_for(ring):
    mailbox, refusals = box(ring, t=4)
    mailbox.offer("site-1", 2, frame(ring[1], 2), asked=True)
    assert not refusals.counts()
    mailbox.offer("site-1", 2, frame(ring[1], 2))
    assert kinds(refusals) == {"replay"}


def test_done_is_a_frame_without_a_vector_after_the_last_round(ring):
    mailbox, refusals = box(ring, t=6)
    mailbox.offer("site-1", 6, frame(ring[1], 6, np.empty(0)))
    mailbox.offer("site-2", 6, frame(ring[2], 6, np.zeros(4)))
    mailbox.offer("site-2", 7, frame(ring[2], 7, np.empty(0)))
    assert mailbox.missing() == ["site-2"] and kinds(refusals) == {"length", "future"}


def test_last_frames_are_believed_by_their_owners_signature(ring):
    mailbox, refusals = box(ring)
    mailbox.offer_final("site-1", "site-2", frame(ring[2], 5, [5.0, 0, 0, 0]))
    assert mailbox.finals()[2].vector[0] == 5.0
    mailbox.offer_final("site-1", "site-2", frame(ring[2], 5, [6.0, 0, 0, 0]))
    mailbox.offer_final("site-1", "site-0", frame(ring[1], 5, sender=0))
    mailbox.offer_final("site-2", "site-1", frame(ring[1], 4))
    mailbox.offer_final("nobody", "site-1", frame(ring[1], 5))
    assert set(mailbox.finals()) == {2} and mailbox.finals()[2].vector[0] == 5.0
    assert refusals.counts() == {
        ("site-1", "twice"): 1,
        ("site-1", "name"): 1,
        ("site-2", "round"): 1,
        ("nobody", "stranger"): 1,
    }


def test_a_hundred_thousand_bad_frames_change_nothing_and_are_logged_once_each(ring, caplog):
    mailbox, refusals = box(ring)
    honest = frame(ring[1], 1, [1.0, 2.0, 3.0, 4.0])
    rng = random.Random(os.urandom(16))
    with caplog.at_level(logging.WARNING, logger="taciturn.site"):
        for k in range(100_000):
            data = bytearray(honest)
            if k % 100:
                data[rng.randrange(52)] ^= 1 << rng.randrange(8)  # the header
            else:
                data[rng.randrange(52, len(data))] ^= 1 << rng.randrange(8)  # vector, certificate, signature
            mailbox.offer("site-1", 1, bytes(data))
    assert mailbox.missing() == ["site-1", "site-2"] and mailbox.t == 1 and not mailbox.finals()
    assert sum(refusals.counts().values()) == 100_000
    assert len(caplog.records) == len(refusals.counts())
    mailbox.offer("site-1", 1, honest)
    assert mailbox.missing() == ["site-2"]


def test_waiting_ends_when_a_frame_arrives(ring):
    mailbox, _ = box(ring)
    timer = threading.Timer(0.05, mailbox.offer, ("site-1", 1, frame(ring[1], 1)))
    timer.start()
    mailbox.wait(30.0)
    timer.join()
    assert mailbox.missing() == ["site-2"]
