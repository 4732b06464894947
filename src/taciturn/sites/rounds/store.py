"""The store of a site: one SQLite file with the records of the protocol and the charges of what was released.

The charges form a hash chain: each contains the hash of the one before. The records and the charges of a step
are written in one transaction, which is on disk before anything is sent. Keys, salts, noise and rows of data
are never stored in this file. Rounds belong to attempts: sequences of rounds with fixed members.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from ...core.errors import TaciturnError, WrongFiles
from ...core.files import LockFile
from ...methods.sums.attempt import certified_run
from ...privacy.facts import Charge, RunFacts, SiteBudget, SiteFacts
from ...privacy.facts_json import budget_from, run_from, site_from, to_plain
from ...privacy.ledger import chain
from ...privacy.ledger.chain import Head, ledger_errors
from ...privacy.ledger.memory import MemoryLedger
from ...privacy.sums import SumFacts
from ..files.database import check_form, check_place, unusable_named, wrong_ledger_as
from ..protocol.events import ChargedRelease, StoreRecords
from ..protocol.frames import FrameRefused
from ..state.high_water import file_identity

FORMAT = 3  # the format of this file
MODEL, RESULT, CERTIFICATE, STATEMENT = "model.json", "result.json", "certificate.json", "statement.json"
REST = "rest"  # name of the record with the planned rounds that will not be released
OVER = "over"  # name of the record that states why the run must not continue
FLOOR = "floor"  # name of the record with the newest attempt and round that may have been sent uncharged
OWN = (REST, FLOOR, OVER)  # names of the records that do not belong to the protocol
_ODD = (FrameRefused, struct.error)  # errors of unpacking a damaged record


class ChargedLedger(MemoryLedger):
    """The charges of one site as a certificate states them, and the last hash of their chain (`head`)."""

    head: Head


class SiteStore:
    """The file of one site, locked by one process. Use it in a `with` block."""

    def __init__(
        self,
        path: Path,
        *,
        job: bytes,
        name: str,
        run: RunFacts,
        facts: SiteFacts,
        budget: SiteBudget | None = None,
    ) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except (FileExistsError, NotADirectoryError) as error:
            raise WrongFiles(f"{path.parent}: `state` must be a folder or must not exist yet.") from error
        check_place(path, write=True)
        self.path, self.run, self.facts, self.budget = path, run, facts, budget
        self.at_least = False  # whether the site may have sent more than this file charges
        self._lock = LockFile(path)
        try:
            with wrong_ledger_as(path), ledger_errors():
                self._db = chain.connect(path, "rwc")
                try:
                    self._begin(job, name)
                except BaseException:
                    self._db.close()
                    raise
        except BaseException:
            self._lock.release()
            raise

    def _begin(self, job: bytes, name: str) -> None:
        """Create the tables of a new file; an existing file must have the same job, site and settings."""
        self._db.execute("PRAGMA journal_mode = WAL")
        with self._transaction() as db:
            if db.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
                db.execute(f"PRAGMA user_version = {FORMAT}")
                db.execute("CREATE TABLE records (key TEXT PRIMARY KEY, value BLOB NOT NULL)")
                chain.create(db)
                first = {"format": FORMAT, "job": job.hex(), "name": name, "id": os.urandom(16).hex()}
                budget = None if self.budget is None else to_plain(self.budget)
                facts = {"run": to_plain(self.run), "facts": to_plain(self.facts), "budget": budget}
                chain.append(db, chain.EMPTY, first | facts)
        check_form(self._db, self.path, FORMAT)
        with unreadable_as(self.path):
            bodies, self.head = chain.verify_rows(self._db)
            first, self.charges = bodies[0], bodies[1:]
            self.id = str(first["id"])
            self.rest = _rest(self._record(REST))
            self._charged = max([(0, 0), *map(_round, self.charges)])
            floor = self._record(FLOOR)
            attempt, round = (0, 0) if floor is None else map(int, json.loads(floor))
            self._floor = attempt, round
            self.at_least = floor is not None
            whose = first["job"], first["name"]
        if whose != (job.hex(), name):
            other = "another site" if whose[0] == job.hex() else "another job"
            raise WrongFiles(f"{self.path} belongs to {other}; a new run needs a new `state` folder.")
        if first.get("facts") != json.loads(json.dumps(to_plain(self.facts))):
            raise WrongFiles(
                f"{self.path}: the run was started with another `penalty`, `noise` or `output_noise`. The "
                "cost depends on them, so they must not change: restore the old values."
            )

    def _record(self, key: str) -> bytes | None:
        row = self._db.execute("SELECT value FROM records WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def records(self) -> dict[str, bytes]:
        """Everything that the protocol has stored."""
        with ledger_errors(), unreadable_as(self.path):
            rows = self._db.execute("SELECT key, value FROM records WHERE key NOT IN (?, ?, ?)", OWN)
            return {str(key): _blob(value) for key, value in rows}

    def write(self, effect: StoreRecords) -> None:
        """Write one step: on return all of it is on disk; on an error none of it is."""
        head, charges, charged = self.head, list(self.charges), self._charged
        with self._transaction() as db:
            for release in effect.releases:
                body = _body(release, len(charges) + 1)
                head = chain.append(db, head, body, (body["site"], body["t"]))
                charges.append(body)
                charged = max(charged, _round(body))
            for key, value in effect.records.items():
                if value is None:
                    db.execute("DELETE FROM records WHERE key = ?", (key,))
                else:
                    db.execute("INSERT OR REPLACE INTO records VALUES (?, ?)", (key, value))
        self.head, self.charges, self._charged = head, charges, charged

    def confirm(self, attempt: int, round: int) -> None:
        """Record that rounds up to this one may have been sent although this file has no charge for them.

        From then on, the site states its privacy costs as lower bounds ('at least').
        """
        self._floor, self.at_least = max(self._floor, (attempt, round)), True
        self.write(StoreRecords(0, {FLOOR: json.dumps(self._floor).encode()}))

    def end_early(self, rest: tuple[SumFacts, ...]) -> None:
        """Record an early end, and the planned rounds that the certificate lists as not released."""
        self.rest = rest
        text = json.dumps([dataclasses.asdict(entry) for entry in rest])
        self.write(StoreRecords(0, {REST: text.encode()}))

    def forbid(self, reason: str) -> None:
        """Record that this run must never continue, neither with `run` nor with `finish`."""
        self.write(StoreRecords(0, {OVER: reason.encode()}))

    @property
    def over(self) -> str | None:
        """Why this run must not continue; None if it may continue."""
        found = self._record(OVER)
        return None if found is None else found.decode()

    @property
    def reached(self) -> tuple[int, int]:
        """The newest attempt and round that this site may have sent; zeros before the first."""
        return max(self._floor, self._charged)

    @cached_property
    def identity(self) -> str:
        """The identity of this file; a moved, copied or replaced file has another one."""
        return file_identity(self.path)

    @property
    def rounds(self) -> list[int]:
        """The rounds that this site released, each as often as it was charged."""
        return sorted(int(body["round"]) for body in self.charges)

    @property
    def ledger(self) -> ChargedLedger:
        """The ledger for a certificate: every release of this site, in the order of attempts."""
        return charged_ledger(self.run, self.facts, self.charges, self.head, self.rest, self.budget)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with unusable_named(self.path), chain.transaction(self._db) as db:
            yield db

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()
        self._lock.release()


def charged_ledger(
    run: RunFacts,
    facts: SiteFacts,
    charges: list[dict[str, Any]],
    head: Head,
    rest: tuple[SumFacts, ...] = (),
    budget: SiteBudget | None = None,
) -> ChargedLedger:
    """The ledger of these charges. `rest` : planned, unreleased rounds. `budget` is recorded, not checked."""
    rows = sorted(charges, key=lambda body: (body["attempt"], body["round"]))
    sums = [body for body in rows if "charge" not in body]
    stated = [(str(body["scope"]), tuple(body["members"]), SumFacts(**body["sum"])) for body in sums]
    ledger = ChargedLedger(certified_run(run, stated, rest=rest) if stated else run, [facts])
    for k, (_, _, entry) in enumerate(stated, start=1):
        ledger.charge(Charge(facts.site, k, scale=entry.std))
    for body in rows:
        if "charge" in body:
            ledger.charge(Charge(**body["charge"]))
    ledger.head, ledger.budgets = head, (budget,)
    return ledger


def is_site_file(path: Path) -> bool:
    """Whether an SQLite file is the store of a site."""
    with open_to_read(path) as db:
        return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'records'").fetchone() is not None


def read_ledger(path: Path) -> ChargedLedger:
    """The charges in the file of a site, which may be running."""
    with open_to_read(path) as db:
        bodies, head = chain.verify_rows(db)
        row = db.execute("SELECT value FROM records WHERE key = ?", (REST,)).fetchone()
        rest = _rest(None if row is None else bytes(row[0]))
        budget = budget_from(bodies[0].get("budget"))
        return charged_ledger(*read_facts(bodies[0]), bodies[1:], head, rest, budget)


def read_facts(first: dict[str, Any]) -> tuple[RunFacts, SiteFacts]:
    """The facts of the run and of the site, from the first row of its chain."""
    return run_from(first["run"]), site_from(first["facts"])


@contextmanager
def open_to_read(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the state file of a site, which may be running, in one transaction, so that all reads agree."""
    with closing(chain.connect(path, "ro")) as db, unreadable_as(path), chain.transaction(db, "BEGIN"):
        yield db


@contextmanager
def unreadable_as(path: Path) -> Iterator[None]:
    """Turn every error of reading a damaged row into `WrongFiles`, with a message of one line."""
    try:
        yield
    except TaciturnError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, MemoryError, *_ODD) as error:
        raise WrongFiles(
            f"{path} is damaged: one of its rows cannot be read. The site releases nothing until you "
            "restore the newest intact copy of the folder."
        ) from error


def _rest(data: bytes | None) -> tuple[SumFacts, ...]:
    return () if data is None else tuple(SumFacts(**entry) for entry in json.loads(data))


def _blob(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("not bytes")
    return value


def _round(body: dict[str, Any]) -> tuple[int, int]:
    """The attempt and the round of a row of the chain."""
    return body["attempt"], body["round"]


def _body(release: ChargedRelease, number: int) -> dict[str, Any]:
    """One row of the chain: the release, its attempt and its cost."""
    body = {
        "site": release.charge.site,
        "t": number,
        "round": release.charge.t,
        "attempt": release.attempt,
        "scope": release.scope.hex(),
        "members": list(release.members),
    }
    if release.sum is None:
        return body | {"charge": release.charge._asdict()}
    return body | {"sum": dict(vars(release.sum))}
