"""What a masked site keeps on disk: enough to go on, and no key whose message is stored."""

import numpy as np
import pytest

from support.sitemasked import masked_network
from taciturn.errors import RunOver, SiteError
from taciturn.masked.masks import PairKeys
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.driver import open_store
from taciturn.sites.rounds.masked.keys import agree, new_secret, public_of
from taciturn.sites.rounds.masked.rounds import MaskedRounds
from taciturn.sites.rounds.masked.store import MaskedState
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.results import write_results

NAMES = ("a", "b", "c")


@pytest.fixture
def ready(tmp_path):
    return make_ready(load_site(masked_network(tmp_path)[0]))


def on_disk(ready):
    """Every byte of every file in the state folder."""
    return b"".join(path.read_bytes() for path in sorted(ready.site.state.iterdir()))


def first_keys(run=b"run"):
    return PairKeys(0, {j: bytes([j]) * 32 for j in range(1, 5)}, run=run)


def test_the_private_key_of_the_run_is_made_once(ready):
    with open_store(ready) as store:
        secret = store.secret()
    with open_store(ready) as store:
        assert store.secret() == secret
        assert store.resume().state.keys is None


def test_a_key_is_gone_from_the_disk_once_its_message_is_stored(ready):
    keys, used = first_keys(), []
    with open_store(ready) as store:
        used.append(store.secret())
        assert used[0] in on_disk(ready)
        state, total = ready.start().descent, None
        for t, facts in enumerate(ready.node.tables.sums, start=1):
            used += keys.keys.values()
            keys.advance()
            store.release(MaskedState(state, total, keys), ready.node.charge_of(t), b"frame", {})
            disk = on_disk(ready)
            assert all(key in disk for key in keys.keys.values())
            assert not any(key in disk for key in used)
            total = np.zeros((1, facts.length), dtype=np.uint64)
            state = ready.node.tables.after(state, total)
        store.finish(MaskedState(state, total), {})
        assert not any(key in on_disk(ready) for key in (*used, *keys.keys.values()))


def test_a_restart_goes_on_with_the_state_and_the_keys_of_the_next_round(ready):
    keys, tables = first_keys(), ready.node.tables
    rng = np.random.default_rng(0)
    total = rng.integers(0, 2**40, (1, tables.sums[0].length)).astype(np.uint64)
    state = tables.after(ready.start().descent, total)
    with open_store(ready) as store:
        keys.advance()
        store.release(MaskedState(ready.start().descent, None, keys), ready.node.charge_of(1), b"1", {})
        keys.advance()
        store.release(MaskedState(state, total, keys), ready.node.charge_of(2), b"2", {})
    with open_store(ready) as store:
        resumed = store.resume()
    assert resumed.frame == b"2" and resumed.state.t == 1
    assert resumed.state.keys.t == 3 and resumed.state.keys.keys == keys.keys
    assert resumed.state.keys.run == b"run"
    assert resumed.state.total.tobytes() == total.tobytes()
    assert resumed.state.descent.y.tobytes() == state.y.tobytes()
    moved = tables.sums[1].length
    after = [
        tables.after(one, np.ones((1, moved), dtype=np.uint64)) for one in (resumed.state.descent, state)
    ]
    assert after[0].f.tobytes() == after[1].f.tobytes()


def test_two_sites_agree_and_a_third_does_not():
    secrets = [new_secret() for _ in NAMES]
    shown = {i: public_of(secret) for i, secret in enumerate(secrets)}

    def keys_of(site, run=b"run"):
        others = [j for j in range(3) if j != site]
        return agree(site, secrets[site], shown, run=run, names=NAMES, partners=others).keys

    assert keys_of(0)[1] == keys_of(1)[0]
    assert len({keys_of(0)[1], keys_of(0)[2], keys_of(1)[2], keys_of(0, run=b"other")[1]}) == 4


def test_a_key_that_is_none_is_named():
    with pytest.raises(SiteError, match="b showed a key for this run that is none"):
        agree(0, new_secret(), {1: bytes(32)}, run=b"run", names=NAMES, partners=[1])


def released(ready, rounds):
    """A site that has released so many rounds, and heard all of them but the last; its states."""
    keys, tables, rng = first_keys(), ready.node.tables, np.random.default_rng(1)
    states, total = [ready.start().descent], None
    with open_store(ready) as store:
        for t in range(1, rounds + 1):
            keys.advance()
            store.release(MaskedState(states[-1], total, keys), ready.node.charge_of(t), b"frame", {})
            total = rng.integers(0, 2**40, (1, tables.sums[t - 1].length)).astype(np.uint64)
            states.append(tables.after(states[-1], total))
    return states, keys


def test_a_run_may_end_with_the_model_of_an_earlier_round(ready):
    states, keys = released(ready, 5)  # four rounds are complete here, the fifth is released
    with open_store(ready) as store:
        for t in (3, 4):  # others may have completed one round less
            assert store.end_after(t).tobytes() == states[t].f.tobytes()
        assert store.charged() == [1, 2, 3, 4, 5]  # what was released stays charged
        certificate = write_results(ready, store, store.end_after(3))
    assert certificate.rounds == 5
    assert not any(key in on_disk(ready) for key in keys.keys.values())


def test_after_the_end_no_mask_can_be_made(ready):
    released(ready, 5)
    with open_store(ready) as store:
        store.end_after(4)
    with open_store(ready) as store:
        rounds = MaskedRounds(ready, ready.node, store, exchange=None, step=lambda steps: None)
        with pytest.raises(RunOver, match="ended after round 4"):
            rounds.run(store.resume())


@pytest.mark.parametrize("t", [0, 1, 5, 6])
def test_there_is_no_model_of_a_round_that_is_not_complete(ready, t):
    released(ready, 5)
    with open_store(ready) as store, pytest.raises(SiteError, match=f"cannot end after round {t}"):
        store.end_after(t)
