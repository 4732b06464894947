"""What one site cannot have signed both: in the run, and in the run and at its early end."""

import numpy as np
import pytest

from support.sitework import frame, sites
from taciturn.sites.rounds.early_end.words import Finish, Why, attempt_of
from taciturn.sites.wire.form import FINISH, LAST, ROUND, contradict, rounds_of
from taciturn.sites.wire.frame import NOTHING, decode, to_message

SENT = [1.0, 2.0, 3.0, 4.0]


@pytest.fixture
def made(tmp_path):
    return sites(tmp_path)


def opened(site, t, vector=None, **changes):
    return decode(frame(site, t, vector, **changes), largest=10**4)


def last(site, t, vector):
    message = ROUND.pack(t) + to_message(np.array(vector))
    return opened(site, LAST, message=message, attempt=attempt_of(site.job.names, ()))


def finish(site, completed):
    names = site.job.names
    message = Finish(completed, Why.AGREED, frozenset()).pack(names)
    return opened(site, FINISH, message=message, attempt=attempt_of(names, ()))


def both_ways(first, second):
    assert contradict(first, second) == contradict(second, first)
    return contradict(first, second)


def test_a_last_vector_is_the_one_that_was_sent_in_its_round(made):
    sent = opened(made[1], 3, SENT)
    wrong = last(made[1], 3, [*SENT[:3], 64.0])
    assert both_ways(sent, wrong) and rounds_of(sent, wrong) == rounds_of(wrong, sent) == (3, 3)
    assert not both_ways(sent, last(made[1], 3, SENT))
    assert not both_ways(opened(made[1], 2, SENT), wrong)  # of another round
    assert not both_ways(opened(made[0], 3, SENT), wrong)  # of another site
    assert not both_ways(opened(made[1], 3, SENT, attempt=9), wrong)  # not of the run itself
    assert not both_ways(opened(made[1], 3, SENT[:3]), wrong)


def test_a_hash_of_a_masked_model_is_no_vector(made):
    hashed = opened(made[1], LAST, message=ROUND.pack(3) + bytes(28), attempt=9)
    assert not both_ways(opened(made[1], 3, SENT), hashed)


def test_whoever_has_released_a_round_has_completed_those_before(made):
    sent = opened(made[1], 4, SENT)
    assert [completed for completed in range(6) if both_ways(sent, finish(made[1], completed))] == [0, 1, 2]
    assert rounds_of(sent, finish(made[1], 2)) == (4, 2)
    for after in (made[1].job.rounds + 1, made[1].job.rounds + 2):  # it may go back and complete the run
        assert not both_ways(opened(made[1], after), finish(made[1], 0))


def test_one_round_twice_and_a_broken_chain(made):
    first, again = opened(made[1], 2, SENT), opened(made[1], 2, [0.0, 2.0, 3.0, 4.0])
    assert both_ways(first, again) and rounds_of(first, again) == (2, 2)
    assert both_ways(first, opened(made[1], 3, SENT, before=NOTHING))
    assert not both_ways(first, opened(made[1], 3, SENT, before=first.digest))
    assert both_ways(last(made[1], 3, SENT), last(made[1], 2, SENT))  # said twice at the end
    assert not both_ways(opened(made[1], 0), opened(made[1], 0, before=first.digest))
