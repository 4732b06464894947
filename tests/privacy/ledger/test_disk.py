"""A charge on disk is durable, chained, made by one process at a time, and undone only before its release."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import taciturn as tt
from support.example_run import charges, run_facts, site_facts
from taciturn.core.errors import BudgetExceeded, LedgerError, ParameterError
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.facts import Charge, SiteBudget
from taciturn.privacy.ledger import chain
from taciturn.privacy.ledger.chain import Head
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.ledger.memory import Ledger, MemoryLedger

RUN, SITES = run_facts(3, 20), site_facts(3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def filled(path: Path) -> Path:
    with SqliteLedger(path, RUN, SITES[:1]) as ledger:
        for charge in charges(1, 5):
            ledger.charge(charge)
    return path


def test_the_same_certificate_as_in_memory(path: Path) -> None:
    memory = MemoryLedger(RUN, SITES)
    with SqliteLedger(path, RUN, SITES) as disk:
        assert isinstance(disk, Ledger)
        for charge in charges(3, 4):
            memory.charge(charge._replace(eta=0.5 * 1.1**charge.t))
            disk.charge(charge._replace(eta=0.5 * 1.1**charge.t))
        first, second = (Certificate.from_ledger(book, 1e-5) for book in (memory, disk))
        assert first.costs == second.costs
        assert second.head == disk.head == Head(13, disk.head.digest)
    with SqliteLedger(path) as again:
        assert again.run == RUN and again.sites == tuple(SITES) and again.head == second.head
        np.testing.assert_array_equal(again.columns(2).eta, memory.columns(2).eta)
        Certificate.from_json(Certificate.from_ledger(again, 1e-5).to_json()).verify()


def test_a_round_is_charged_once_also_after_reopening(filled: Path) -> None:
    with SqliteLedger(filled, RUN, SITES[:1]) as ledger:
        with pytest.raises(LedgerError, match="site 0 has been charged for round 5 already"):
            ledger.charge(Charge(0, 5, 0.5, 3.0))
        ledger.charge(Charge(0, 6, 0.5, 3.0))
        assert ledger.columns(0).t.tolist() == [1, 2, 3, 4, 5, 6]


def test_nothing_refunds(filled: Path) -> None:
    with SqliteLedger(filled) as ledger:
        names = {name for name in dir(ledger) if not name.startswith("_")}
        assert names == {
            "aborted",
            "budgets",
            "charge",
            "charge_all",
            "charge_round",
            "close",
            "columns",
            "head",
            "run",
            "sites",
            "transaction",
        }
    db = sqlite3.connect(filled)
    for statement in ("DELETE FROM ledger WHERE seq = 5", "UPDATE ledger SET t = 9 WHERE seq = 5"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute(statement)
    db.close()


# -- someone else's hands ---------------------------------------------------------------------------


def unguarded(path: Path, *statements: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    for statement in ("DROP TRIGGER ledger_keeps", "DROP TRIGGER ledger_holds", *statements):
        db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    ("tampering", "message"),
    [
        (["UPDATE ledger SET body = replace(body, '3.0', '0.3') WHERE seq = 2"], "row 2 does not follow"),
        (["UPDATE ledger SET body = replace(body, '1750', '1') WHERE seq = 0"], "row 0 does not follow"),
        (["UPDATE ledger SET hash = 'a' WHERE seq = 3"], "row 3 does not follow"),
        (["UPDATE ledger SET t = 9 WHERE seq = 3"], "row 3 is filed under another"),
        (["DELETE FROM ledger WHERE seq = 3"], "row 3 does not follow"),
        (
            ["DELETE FROM ledger WHERE seq = 3", "UPDATE ledger SET seq = seq - 1 WHERE seq > 3"],
            "row 3 does not",
        ),
        (["DELETE FROM ledger WHERE seq = 5"], "states 6 rows and has 5"),
        (["DELETE FROM ledger"], "states 6 rows and has 0"),
        (
            ["DELETE FROM ledger", f"UPDATE ledger_head SET rows = 0, hash = '{chain.EMPTY.digest}'"],
            "all of its rows are missing",
        ),
        (["DELETE FROM ledger_head"], "its head .* is missing"),
        (
            [
                "UPDATE ledger SET seq = 99, t = 99 WHERE seq = 2",
                "UPDATE ledger SET seq = 2 WHERE seq = 3",
                "UPDATE ledger SET seq = 3 WHERE seq = 99",
            ],
            "row 2 does not follow",
        ),
    ],
)
def test_tampering_is_found_on_opening(filled: Path, tampering: list[str], message: str) -> None:
    unguarded(filled, *tampering)
    with pytest.raises(LedgerError, match=message):
        SqliteLedger(filled)
    with pytest.raises(LedgerError, match=message):
        SqliteLedger(filled, readonly=True)


def test_a_file_restored_is_found_by_its_head(filled: Path, tmp_path: Path) -> None:
    shutil.copy(filled, tmp_path / "backup")
    with SqliteLedger(filled) as ledger:
        early = ledger.head
        ledger.charge(Charge(0, 6, 0.5, 3.0))
        late = ledger.head
    with SqliteLedger(filled, at_least=early), pytest.raises(LedgerError, match="in use by another process"):
        SqliteLedger(filled, at_least=late)
    shutil.copy(tmp_path / "backup", filled)
    with pytest.raises(LedgerError, match="truncated or restored from a backup"):
        SqliteLedger(filled, at_least=late)


def test_ledger_of_other_facts_is_refused(filled: Path) -> None:
    with pytest.raises(LedgerError, match="created with another `C`"):
        SqliteLedger(filled, run_facts(3, 20, C=1.0), SITES[:1])
    with pytest.raises(LedgerError, match="created with other sites"):
        SqliteLedger(filled, RUN, SITES[:2])
    with pytest.raises(LedgerError, match="created with other budgets"):
        SqliteLedger(filled, RUN, SITES[:1], SiteBudget(1.0, 1e-5))
    with SqliteLedger(filled, run_facts(3, 20, versions={"taciturn": "later"}), SITES[:1]) as ledger:
        assert ledger.run == RUN


def test_missing_or_invalid_ledger_file_is_refused(path: Path) -> None:
    with pytest.raises(LedgerError, match="no ledger here yet"):
        SqliteLedger(path)
    with pytest.raises(LedgerError, match="cannot be used"):
        SqliteLedger(path.with_name("nowhere"), readonly=True)
    with pytest.raises(LedgerError, match="lock file cannot be opened"):
        SqliteLedger(path / "no" / "folder", RUN, SITES)
    path.write_bytes(b"not a database at all, but long enough to be read as one" * 20)
    with pytest.raises(LedgerError, match="not a database"):
        SqliteLedger(path, RUN, SITES)


# -- one process at a time --------------------------------------------------------------------------


@pytest.mark.process
def test_two_processes_cannot_both_charge(filled: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(tt.__file__).parents[1])!r})\n"
        "from taciturn.core.errors import LedgerError\n"
        "from taciturn.privacy.ledger.disk import SqliteLedger\n"
        f"path = {str(filled)!r}\n"
        "try:\n"
        "    SqliteLedger(path)\n"
        "except LedgerError as error:\n"
        "    print(error, len(SqliteLedger(path, readonly=True).columns(0).t))\n"
    )
    with SqliteLedger(filled):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        done.stdout.strip()
        == "the ledger ledger.sqlite is in use by another process; stop that process first. 5"
    )


def test_ledger_changed_by_another_process_refuses_further_charges(filled: Path) -> None:
    db = sqlite3.connect(filled, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    with SqliteLedger(filled) as ledger, SqliteLedger(db) as other:
        other.charge(Charge(0, 6, 0.5, 3.0))
        for t in (6, 7):
            with pytest.raises(LedgerError, match="another process changed"):
                ledger.charge(Charge(0, t, 0.5, 3.0))
        assert ledger.columns(0).t.tolist() == [1, 2, 3, 4, 5]
    assert db.execute("SELECT count(*) FROM ledger").fetchone() == (7,)  # the caller's connection stays open
    db.close()


def test_reading_does_not_charge(filled: Path) -> None:
    with SqliteLedger(filled, readonly=True) as ledger, pytest.raises(LedgerError, match="read-only"):
        ledger.charge(Charge(0, 6, 0.5, 3.0))


def test_charge_and_outbox_together_or_not_at_all(path: Path) -> None:
    with SqliteLedger(path, RUN, SITES[:1], SiteBudget(5.0, 1e-5)) as ledger:
        with ledger.transaction() as db:
            db.execute("CREATE TABLE outbox (t INTEGER PRIMARY KEY, frame BLOB)")
        with ledger.transaction() as db:
            ledger.charge(Charge(0, 1, 0.5, 3.0))
            db.execute("INSERT INTO outbox VALUES (1, x'01')")
        head = ledger.head
        with pytest.raises(ZeroDivisionError), ledger.transaction() as db:
            ledger.charge(Charge(0, 2, 0.5, 3.0))
            db.execute("INSERT INTO outbox VALUES (2, x'02')")
            raise ZeroDivisionError
        assert ledger.head == head and ledger.columns(0).t.tolist() == [1]
        with ledger.transaction() as db:
            ledger.charge(Charge(0, 2, 0.5, 3.0))
            db.execute("INSERT INTO outbox VALUES (2, x'03')")
        with pytest.raises(LedgerError, match="open already"), ledger.transaction(), ledger.transaction():
            raise ZeroDivisionError
    with SqliteLedger(path) as ledger, ledger.transaction() as db:
        assert db.execute("SELECT * FROM outbox").fetchall() == [(1, b"\1"), (2, b"\3")]
        assert ledger.columns(0).t.tolist() == [1, 2]


def test_a_refused_charge_of_several_sites_leaves_no_other_one_in_the_transaction(path: Path) -> None:
    with SqliteLedger(path, RUN, SITES) as ledger:
        ledger.charge(Charge(1, 1, 0.5, 3.0))
        with ledger.transaction():
            with pytest.raises(LedgerError, match="charged for round 1 already"):
                ledger.charge_all([Charge(0, 1, 0.5, 3.0), Charge(1, 1, 0.5, 3.0)])
        assert ledger.columns(0).t.size == 0 and ledger.head.rows == 2


def test_a_site_brings_its_own_connection(path: Path) -> None:
    loose = sqlite3.connect(path)
    with pytest.raises(LedgerError, match="isolation_level=None"):
        SqliteLedger(loose, RUN, SITES)
    loose.close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    with pytest.raises(LedgerError, match="synchronous = FULL"):
        SqliteLedger(db, RUN, SITES)
    db.execute("PRAGMA synchronous = FULL")
    with SqliteLedger(db, RUN, SITES) as ledger, ledger.transaction() as within:
        assert within is db
        ledger.charge(Charge(0, 1, 0.5, 3.0))
    with pytest.raises(LedgerError, match="closed"):
        ledger.charge(Charge(0, 2, 0.5, 3.0))
    db.close()


# -- the budget ------------------------------------------------------------------------------------


def test_the_budget_outlives_the_process(path: Path) -> None:
    limit = SiteBudget(0.8, 1e-5)
    memory = MemoryLedger(RUN, SITES[:1], limit)
    stopped = 0
    for t in range(1, 21):
        with SqliteLedger(path, RUN, SITES[:1], limit) as ledger:
            try:
                memory.charge(Charge(0, t, 0.5, 3.0))
            except BudgetExceeded:
                stopped = t
                with pytest.raises(BudgetExceeded, match="site 0"):
                    ledger.charge(Charge(0, t, 0.5, 3.0))
                break
            ledger.charge(Charge(0, t, 0.5, 3.0))
    assert 3 < stopped <= 20
    with SqliteLedger(path) as ledger:
        assert ledger.columns(0).t.size == stopped - 1


def test_an_undone_charge_gives_its_budget_back_to_no_one_else(path: Path) -> None:
    with SqliteLedger(path, RUN, SITES[:1], SiteBudget(0.8, 1e-5)) as ledger:
        for _ in range(30):  # undone before any release: each starts from what is on disk
            with pytest.raises(ZeroDivisionError), ledger.transaction():
                ledger.charge(Charge(0, 1, 0.5, 3.0))
                raise ZeroDivisionError
        ledger.charge(Charge(0, 1, 0.5, 3.0))
        assert ledger.head.rows == 2


# -- a disk that fails ------------------------------------------------------------------------------


def test_a_full_disk_charges_nothing(filled: Path) -> None:
    with SqliteLedger(filled) as ledger:
        with ledger.transaction() as db:
            db.execute("CREATE TABLE outbox (frame BLOB)")
            pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages + 1}")
        head = ledger.head
        with (
            pytest.raises(LedgerError, match="disk is full; without it nothing may be released"),
            ledger.transaction(),
        ):
            ledger.charge(Charge(0, 6, 0.5, 3.0))
            db.execute("INSERT INTO outbox VALUES (?)", (bytes(100_000),))
        assert ledger.head == head and ledger.columns(0).t.size == 5
    with SqliteLedger(filled) as ledger:
        ledger.charge(Charge(0, 6, 0.5, 3.0))


def test_failing_write_or_sync_charges_nothing(path: Path) -> None:
    """The operating system fails the write or the sync; SQLite's own limit plays no part."""
    resource = pytest.importorskip("resource", reason="needs POSIX resource limits")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with SqliteLedger(path, run_facts(3, 500), SITES[:1]) as ledger:
        charged = 0
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 4096, hard))
            with pytest.raises(LedgerError, match="nothing may be released"):
                for charge in charges(1, 500):
                    ledger.charge(charge)
                    charged = charge.t
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert 0 < charged < 500 and ledger.head.rows == charged + 1
        ledger.charge(Charge(0, charged + 1, 0.5, 3.0))
    with SqliteLedger(path) as ledger:
        assert ledger.columns(0).t.tolist() == list(range(1, charged + 2))


def test_a_file_turned_read_only(filled: Path) -> None:
    with SqliteLedger(filled) as ledger:
        with ledger.transaction() as db:
            pass
        db.execute("PRAGMA query_only = ON")
        with pytest.raises(LedgerError, match="readonly database; without it nothing may be released"):
            ledger.charge(Charge(0, 6, 0.5, 3.0))
        assert ledger.columns(0).t.size == 5


@pytest.mark.parametrize("bad", [{"site": 7}, {"t": 99}, {"eta": -1.0}])
def test_a_senseless_charge_is_refused(filled: Path, bad: dict[str, Any]) -> None:
    with SqliteLedger(filled) as ledger, pytest.raises(ParameterError):
        ledger.charge(Charge(0, 6, 0.5, 3.0)._replace(**bad))


def test_a_commit_survives_a_power_cut(tmp_path):
    """Below EXTRA, SQLite does not sync the folder of a deleted journal, which may then reappear."""
    with SqliteLedger(tmp_path / "a.sqlite", run_facts(), site_facts()) as ledger, ledger.transaction() as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert db.execute("PRAGMA synchronous").fetchone() == (3,)


@pytest.mark.parametrize(
    ("row", "text", "message"),
    [
        (2, "{bad", "row 2 is not a JSON object"),
        (2, "[1]", "row 2 is not a JSON object"),
        (0, '{"budgets":[],"format":1,"run":[],"sites":[]}', "in a format that this version does not know"),
        (
            1,
            '{"eta":0.5,"output_scale":"x","scale":3.0,"site":0,"t":1}',
            "in a format that this version does not know",
        ),
    ],
)
def test_rows_of_other_kinds_in_a_chain_that_fits_give_one_line(
    filled: Path, row: int, text: str, message: str
) -> None:
    """An attacker who rewrites the whole chain can write any text. Opening it must not end in a traceback."""
    with sqlite3.connect(filled) as db:
        rows = db.execute("SELECT site, t, body FROM ledger ORDER BY seq").fetchall()
        db.execute("DROP TRIGGER ledger_keeps")
        digest = chain.EMPTY.digest
        for seq, (_, _, body) in enumerate(rows):
            found = text if seq == row else body
            digest = hashlib.sha256(f"{digest}\n{found}".encode()).hexdigest()
            db.execute("UPDATE ledger SET body = ?, hash = ? WHERE seq = ?", (found, digest, seq))
        db.execute("UPDATE ledger_head SET hash = ?", (digest,))
    with pytest.raises(LedgerError, match=message):
        SqliteLedger(filled)
