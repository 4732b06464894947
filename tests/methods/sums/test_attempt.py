"""The message of one site in an attempt: its share, and fresh noise of the stated size."""

import numpy as np
import pytest
from tools.simulation.program import ROWS, tables

from taciturn.methods.sums.attempt import SumsSite
from taciturn.rng import SecureStreams

FIVE, FOUR = (0, 1, 2, 3, 4), (0, 1, 2, 3)
DRAWS = 4000


class Share:
    """A private half that always adds the same."""

    def integers(self, query, facts):
        return np.full((1, facts.length), 7, dtype=np.int64)


def noises(attempt, t):
    state = attempt.site.start()
    for done in range(t - 1):
        state = attempt.tables.program.advance(state, np.zeros((1, attempt.tables.sums[done].length)))
    length = attempt.sum_facts(t).length
    sent = [np.frombuffer(attempt.message(state), dtype="<i8") for _ in range(DRAWS // length)]
    return np.concatenate(sent) - 7.0


@pytest.mark.parametrize(("members", "base", "left"), [(FIVE, 0, 1.0), (FOUR, 1, 0.7)])
def test_a_message_has_the_noise_that_its_charge_and_its_certificate_state(members, base, left):
    """A spread estimated from so many draws strays by a part in 90; 1 in 10^8 estimates by six of them."""
    attempt = SumsSite(0, tables(5, 1, 4), Share(), SecureStreams(), (ROWS,) * 5).attempt(members, base, left)
    t = base + 1
    drawn = noises(attempt, t)
    stated = attempt.sum_facts(t).std
    assert attempt.charge(t).scale == stated
    assert np.sqrt(np.mean(drawn**2)) == pytest.approx(stated, rel=6 / np.sqrt(2 * len(drawn)))
    assert len(np.unique(drawn)) > 0.9 * len(drawn)
