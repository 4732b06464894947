"""The store: each step is atomic on disk."""

import sqlite3
import tomllib
from contextlib import closing

import pytest

from support.sitestore import charge_round, open_store
from support.sitework import sites
from taciturn.core.errors import LedgerError, SiteError, WrongFiles
from taciturn.jobfile.toml_files import write_toml
from taciturn.privacy.ledger import chain
from taciturn.sites.files.site import load_site
from taciturn.sites.protocol.events import StoreRecords
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.store import SiteStore, open_to_read


@pytest.fixture
def ready(tmp_path):
    return make_ready(sites(tmp_path)[0])


def test_a_step_is_there_after_a_restart_with_its_charge(ready):
    with open_store(ready) as store:
        assert store.records() == {} and store.reached == (0, 0)
        charge_round(ready, store, 1, b"one")
        store.write(StoreRecords(2, {"hello": b"h", "gone": b"x"}))
        store.write(StoreRecords(3, {"gone": None}))
        assert store.reached == (1, 1)
    with open_store(ready) as store:
        assert store.records() == {"message": b"one", "hello": b"h"}
        assert store.reached == (1, 1) and store.rounds == [1]
        assert store.ledger.columns(0).t.tolist() == [1]


def test_a_reader_sees_one_moment_while_the_site_writes(ready):
    with open_store(ready) as store:
        charge_round(ready, store, 1, b"one")
        with open_to_read(ready.site.database) as db:
            (rows,) = db.execute("SELECT count(*) FROM ledger").fetchone()
            charge_round(ready, store, 2, b"two")
            assert chain.stored_head(db).rows == rows == store.head.rows - 1
            chain.verify_rows(db)


def test_a_failure_anywhere_in_a_step_undoes_all_of_it(ready, monkeypatch):
    with open_store(ready) as store:
        charge_round(ready, store, 1, b"one")
        before = store.head, store.records()
        with pytest.raises(LedgerError):
            store.write(StoreRecords(2, {"message": b"two", "bad": object()}))
        assert (store.head, store.records()) == before
        charge_round(ready, store, 2, b"two")
    with open_store(ready) as store:
        assert store.rounds == [1, 2] and store.records()["message"] == b"two"


def test_the_error_about_a_full_disk_names_the_file_and_nothing_is_stored(ready):
    with open_store(ready) as store:
        charge_round(ready, store, 1, b"one")
        store._db.execute("PRAGMA max_page_count = 1")
        with pytest.raises(LedgerError, match=f"^{ready.site.database}: .* disk is full"):
            charge_round(ready, store, 2, bytes(2**20))
        assert store.rounds == [1] and store.records() == {"message": b"one"}


def test_no_charge_can_be_changed_or_taken_back(ready):
    with open_store(ready) as store:
        charge_round(ready, store, 1)
    with closing(sqlite3.connect(ready.site.database)) as db:
        for statement in ("UPDATE ledger SET body = 'x'", "DELETE FROM ledger"):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(statement)


def test_a_store_belongs_to_one_job_and_one_site(ready, tmp_path):
    with open_store(ready):
        pass
    given = {"run": ready.run, "facts": ready.facts}
    with pytest.raises(WrongFiles, match="another site"):
        SiteStore(ready.site.database, job=ready.site.job.hash, name="site-1", **given)
    with pytest.raises(WrongFiles, match="another job"):
        SiteStore(ready.site.database, job=bytes(32), name="site-0", **given)


@pytest.mark.parametrize("entry", [{"penalty": 0.7}, {"output_noise": {"kind": "gaussian", "std": 0.01}}])
def test_schedules_are_fixed_once_a_run_has_begun(ready, entry):
    with open_store(ready):
        pass
    path = ready.site.folder / "site.toml"
    path.write_text(write_toml(tomllib.loads(path.read_text()) | entry))
    with pytest.raises(WrongFiles, match="started with another `penalty`, `noise` or `output_noise`"):
        open_store(make_ready(load_site(path)))


def test_one_process_at_a_time(ready):
    with open_store(ready), pytest.raises((SiteError, LedgerError)):
        open_store(ready)


def test_every_commit_reaches_the_disk(ready):
    with open_store(ready) as store:
        assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert store._db.execute("PRAGMA synchronous").fetchone() == (3,)


def test_a_file_of_another_release_is_named_as_such(ready):
    with open_store(ready):
        pass
    with closing(sqlite3.connect(ready.site.database)) as db:
        db.execute("PRAGMA user_version = 2")
    with pytest.raises(WrongFiles, match="written in format 2 by another release"):
        open_store(ready)
