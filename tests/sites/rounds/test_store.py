"""The store: a round is on disk as a whole, or not at all."""

import sqlite3
import tomllib
from contextlib import closing

import numpy as np
import pytest

from support.sitework import sites
from taciturn.admm.node import NodeState
from taciturn.errors import BudgetExceeded, LedgerError, SiteError, WrongFiles
from taciturn.sites.files.site import load_site
from taciturn.sites.files.toml import write_toml
from taciturn.sites.rounds.driver import open_store
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.store import SiteStore


@pytest.fixture
def ready(tmp_path):
    return make_ready(sites(tmp_path)[0])


def state(t, value):
    full = np.full((1, 4), value)
    return NodeState(t, full, 2 * full, 3 * full)


def same(a, b):
    return a.t == b.t and all(np.array_equal(getattr(a, n), getattr(b, n)) for n in ("f", "lam", "heard"))


def test_a_new_store_starts_at_zero(ready):
    with open_store(ready) as store:
        resumed = store.resume()
    assert resumed.frame is None and same(resumed.state, ready.start())


def test_a_released_round_resumes_with_its_bytes(ready):
    with open_store(ready) as store:
        store.release(ready.start(), ready.node.charge_of(1), b"one", {})
    with open_store(ready) as store:
        assert store.resume().frame == b"one" and same(store.resume().state, ready.start())
        store.release(state(1, 0.1), ready.node.charge_of(2), b"two", {1: b"a", 2: b"b"})
    with open_store(ready) as store:
        resumed = store.resume()
        assert resumed.frame == b"two" and same(resumed.state, state(1, 0.1))
        assert store.frame(1) == b"one" and store.frame(3) is None


def test_a_round_cannot_be_charged_or_released_twice(ready):
    with open_store(ready) as store:
        store.release(ready.start(), ready.node.charge_of(1), b"one", {})
        with pytest.raises(LedgerError, match="charged"):
            store.release(state(1, 0.1), ready.node.charge_of(1), b"other", {})
        assert store.frame(1) == b"one" and same(store.resume().state, ready.start())
        with pytest.raises(sqlite3.IntegrityError), closing(sqlite3.connect(ready.site.database)) as db:
            db.execute("UPDATE outbox SET frame = 'x'")


def test_a_failure_anywhere_in_a_round_undoes_all_of_it(ready, monkeypatch):
    def fail(*_):
        raise sqlite3.OperationalError("full")

    with open_store(ready) as store:
        monkeypatch.setattr(SiteStore, "_write_state", fail)
        with pytest.raises(LedgerError, match="full; nothing may be released"):
            store.release(state(0, 0.0), ready.node.charge_of(1), b"one", {})
        monkeypatch.undo()
        assert store.frame(1) is None and store.ledger.columns(0).t.size == 0
        store.release(ready.start(), ready.node.charge_of(1), b"one", {})
        assert store.ledger.columns(0).t.tolist() == [1]


def test_the_budget_stops_the_round_that_would_pass_it(tmp_path):
    ready = make_ready(sites(tmp_path, site={"budget": {"epsilon": 3.0}})[0])
    afford = ready.affordable()
    assert 0 < afford < 5
    with open_store(ready) as store:
        for t in range(1, afford + 1):
            store.release(state(t - 1, 0.0), ready.node.charge_of(t), b"f", {})
        with pytest.raises(BudgetExceeded):
            store.release(state(afford, 0.0), ready.node.charge_of(afford + 1), b"g", {})
        assert store.frame(afford + 1) is None


def test_a_store_belongs_to_one_job_and_one_site(ready, tmp_path):
    open_store(ready).close()
    other = make_ready(
        sites(tmp_path / "other", job={"name": "other"}, site={"state": str(ready.site.state)})[0]
    )
    with pytest.raises(SiteError, match="another job"):
        open_store(other)
    second = make_ready(
        sites(tmp_path / "second", job={"rounds": 6}, site={"state": str(ready.site.state)})[0]
    )
    with pytest.raises(WrongFiles, match="rounds"):
        open_store(second)


@pytest.mark.parametrize("key", ["penalty", "noise", "output_noise"])
def test_schedules_are_fixed_once_a_run_has_begun(ready, tmp_path, key):
    open_store(ready).close()
    file = tmp_path / "site-0" / "site.toml"
    changed = {"penalty": 0.7, "noise": {"kind": "gaussian", "std": 2.0}}
    facts = tomllib.loads(file.read_text()) | {key: changed.get(key, {"kind": "gaussian", "std": 1e-5})}
    file.write_text(write_toml(facts))
    other = make_ready(load_site(file))
    with pytest.raises((SiteError, LedgerError), match="begun with another"):
        open_store(other)


def test_the_size_of_the_output_noise_is_fixed_too(tmp_path):
    """Its kind is a fact that the ledger keeps; its size is in the hash of the schedules alone."""
    site = sites(tmp_path, site={"output_noise": {"kind": "gaussian", "std": 1e-5}})[0]
    open_store(make_ready(site)).close()
    file = tmp_path / "site-0" / "site.toml"
    facts = tomllib.loads(file.read_text()) | {"output_noise": {"kind": "gaussian", "std": 1e-4}}
    file.write_text(write_toml(facts))
    with pytest.raises(SiteError, match="begun with another"):
        open_store(make_ready(load_site(file)))


def test_one_process_at_a_time(ready):
    with open_store(ready), pytest.raises(LedgerError, match="held by another process"):
        open_store(ready)
    open_store(ready).close()


def test_every_commit_reaches_the_disk(ready):
    with open_store(ready) as store:
        assert store._open().execute("PRAGMA synchronous").fetchone() == (2,)
        assert store._open().execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_what_was_said_and_heard_is_there_after_a_restart(ready):
    with open_store(ready) as store:
        store.say(-1, b"hello")
        store.hear(-1, {1: b"h1"})
        for t in range(1, 6):
            store.release(state(t - 1, 0.0), ready.node.charge_of(t), b"f%d" % t, {})
        store.finish(state(5, 0.5), {1: b"x", 2: b"y"})
        with pytest.raises(LedgerError):
            store.say(-1, b"another hello")
    with open_store(ready) as store:
        assert store.resume().state.t == 5 and store.resume().frame is None
        assert store.frame(-1) == b"hello" and store.frames_heard(-1) == {1: b"h1"}
        assert store.frames_heard(5) == {1: b"x", 2: b"y"}


def test_only_the_newest_rounds_of_others_are_kept(ready):
    with open_store(ready) as store:
        for t in (0, 1, 2, 300):
            store.hear(t, {1: b"x"})
        assert [bool(store.frames_heard(t)) for t in (0, 1, 2, 300)] == [True, False, False, True]


def test_a_file_of_another_release_says_so(ready):
    open_store(ready).close()
    with closing(sqlite3.connect(ready.site.database)) as db:
        db.execute("PRAGMA user_version = 9")
    with pytest.raises(SiteError, match="form 9 by another release"):
        open_store(ready)
