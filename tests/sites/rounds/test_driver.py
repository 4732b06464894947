"""What a site makes of its neighbours' frames."""

import numpy as np
import pytest

from support.sitework import PATH_OF_3, shards, sites
from taciturn.errors import BudgetExceeded
from taciturn.sites.rounds.driver import Rounds, open_store, sum_heard
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.wire.frame import decode, encode, to_message, to_vector
from taciturn.sites.wire.mailbox import Letter


def letters(*values):
    return {j: letter(j, np.array([value])) for j, value in enumerate(values)}


def letter(sender, vector):
    content = encode(job=bytes(32), t=1, sender=sender, message=to_message(vector))
    return Letter(b"frame", decode(content + bytes(64), largest=1000))


def test_vectors_are_added_in_the_order_of_the_sites():
    assert sum_heard(letters(1.0, 1e16, -1e16), 1, clip=1e17).tolist() == [[0.0]]
    assert sum_heard(letters(1e16, -1e16, 1.0), 1, clip=1e17).tolist() == [[1.0]]


def test_incoming_vectors_are_clipped_to_the_public_range():
    assert sum_heard(letters(100.0, -0.5), 1, clip=64.0).tolist() == [[63.5]]


class Wire:
    """Stands in for the exchange: notes what is on disk at the moment when a frame is sent."""

    links = 0

    def __init__(self, ready, store, stop=None):
        self.ready, self.store, self.stop, self.sent, self.session = ready, store, stop, [], self

    def missing(self):
        return []

    def seal(self, t, message):
        return self.ready.seal(t, message)

    def send(self, t, frame):
        charged = self.store.ledger.columns(0).t.tolist()
        self.sent.append((t, frame, self.store.frame(t) == frame, t in charged))
        if t == self.stop:
            raise KeyboardInterrupt
        return {1: letter(1, np.zeros(4))}


def driven(ready, stop=None):
    """One site's rounds with neighbours who send zeros; what was sent, up to where it was stopped."""
    with open_store(ready) as store:
        wire = Wire(ready, store, stop)
        rounds = Rounds(ready, store, wire, lambda steps: None)
        try:
            rounds.run(store.resume())
        except (KeyboardInterrupt, BudgetExceeded) as error:
            assert stop or isinstance(error, BudgetExceeded)
        return wire.sent


def test_charge_and_bytes_are_on_disk_before_a_frame_is_sent(tmp_path):
    sent = driven(make_ready(sites(tmp_path, PATH_OF_3)[0]))
    assert [t for t, *_ in sent] == [1, 2, 3, 4, 5]
    assert all(stored and charged for _, _, stored, charged in sent)


def test_a_real_site_that_resumes_sends_the_same_bytes_and_is_charged_once(tmp_path):
    """Without a seed a second draw would differ: the stored bytes are sent, and carry the state on."""
    output = {"output_noise": {"kind": "gaussian", "std": 1e-3}}
    ready = make_ready(sites(tmp_path, PATH_OF_3, job={"seed": None, "tol": 1e-7}, site=output)[0])
    first = driven(ready, stop=3)
    again = driven(ready)
    assert [t for t, *_ in first] == [1, 2, 3] and [t for t, *_ in again] == [3, 4, 5]
    assert first[-1][1] == again[0][1]
    with open_store(ready) as store:
        assert store.ledger.columns(0).t.tolist() == [1, 2, 3, 4, 5]
        state = store.resume().state
    released = [to_vector(ready.open_frame(frame).message) for _, frame, *_ in first[:-1] + again]
    np.testing.assert_array_equal(state.f[0], released[-1])
    np.testing.assert_allclose(state.lam[0], 0.25 * np.sum(released, axis=0), rtol=1e-12)


def test_nothing_is_sent_past_the_budget(tmp_path):
    ready = make_ready(sites(tmp_path, PATH_OF_3, site={"budget": {"epsilon": 4.0}})[0])
    assert 0 < ready.affordable() < 5
    assert len(driven(ready)) == ready.affordable()


def test_a_site_is_charged_for_its_own_rows_and_states_its_tolerance(tmp_path):
    data = [(X[:rows], y[:rows]) for (X, y), rows in zip(shards(3), (24, 12, 18), strict=True)]
    made = [make_ready(site) for site in sites(tmp_path, PATH_OF_3, data=data, job={"tol": 1e-4})]
    assert [ready.facts.samples for ready in made] == [24, 12, 18]
    assert [ready.facts.degree for ready in made] == [1, 2, 1]
    assert all(ready.run.tol == 1e-4 == ready.node.tol for ready in made)
    costs = [ready.forecast().epsilon for ready in made]
    assert costs[2] > costs[0] and costs[1] == pytest.approx(costs[0], rel=1e-3)  # C / (V B)
