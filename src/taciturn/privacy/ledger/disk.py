"""A ledger on disk for real runs: SQLite, every commit synced, every row chained to the one before.

Row 0 holds the facts, the others one charge each. Opening a ledger verifies all of it: a changed, inserted,
deleted or reordered row is found. Rows cut off at the end are found through the head stored beside them.
The file alone cannot show that it was restored from a backup, or that someone rewrote rows and head together:
keep `ledger.head` elsewhere (a certificate states it) and pass it as `at_least` when opening.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import LedgerError, ParameterError
from ...core.files import LockFile
from ..facts import Charge, Columns, RoundCharges, RunFacts, SiteBudget, SiteFacts
from ..facts_json import budget_from, run_from, site_from, to_plain
from . import chain
from .chain import Head, ledger_errors
from .filter import Filter, Spent, filters
from .memory import SiteBudgets, already_charged, check_charge, checked_budgets, checked_sites

_FULL = 2  # PRAGMA synchronous


class _State(NamedTuple):
    """The state to which a failed transaction returns; nothing of it was released."""

    head: Head
    charges: int
    spent: list[Spent | None]


class SqliteLedger:
    """A durable ledger. Use it in a `with` block; one process at a time may charge.

    Parameters
    ----------
    target : a path, or an open connection (`isolation_level=None`) to the file where a site keeps its state.
        With a connection, keeping other processes out and closing it are the caller's tasks.
    run, sites, budget : the facts of a new ledger. For an existing one they may be left out; where given
        they must agree with those it was begun with (versions of software apart).
    at_least : a head noted earlier, which the ledger must still contain.
    readonly : look, do not charge; works beside a process that charges.
    """

    run: RunFacts
    sites: tuple[SiteFacts, ...]
    budgets: tuple[SiteBudget | None, ...]
    _head: Head
    _charges: list[Charge]
    _filters: list[Filter | None]

    def __init__(
        self,
        target: str | Path | sqlite3.Connection,
        run: RunFacts | None = None,
        sites: Sequence[SiteFacts] = (),
        budget: SiteBudgets = None,
        *,
        at_least: Head | None = None,
        readonly: bool = False,
    ) -> None:
        given = None if run is None else _facts(run, sites, budget)
        self._guard = threading.RLock()
        self._readonly, self._within = readonly, False
        self._owned = not isinstance(target, sqlite3.Connection)
        self._lock: LockFile | None = None
        self._db: sqlite3.Connection | None = None
        try:
            if isinstance(target, sqlite3.Connection):
                self._db = target
            else:
                self._lock = None if readonly else LockFile(Path(target))
                self._db = _connect(Path(target), readonly)
            self._open(self._db, given, at_least)
        except BaseException:
            self.close()
            raise

    # -- charging -------------------------------------------------------------------------------

    def charge(self, charge: Charge) -> None:
        """Record one release before it happens; on return it is on disk, unless a `transaction` is open."""
        with self._guard:
            if self._within:
                self._charge(self._connection(), charge)
            else:
                with self.transaction() as db:
                    self._charge(db, charge)

    def charge_round(self, charges: RoundCharges) -> None:
        """Record one release of each of several sites, on disk together or not at all."""
        if len(set(charges.sites.tolist())) < len(charges.sites):
            raise ParameterError("`charges` must contain at most one charge per site.")
        with self._guard:
            if self._within:
                raise LedgerError("a transaction of this ledger is open; charge site by site inside it.")
            with self.transaction() as db:
                for charge in charges.each():
                    self._charge(db, charge)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Charges, and rows the caller writes to tables of its own, on disk together or not at all.

        Release after the block, never inside it: an error undoes the charge, which is allowed only if the
        round was not released.
        """
        with self._guard:
            db = self._connection()
            if self._readonly:
                raise LedgerError("the ledger was opened read-only; nothing may be released.")
            if self._within:
                raise LedgerError("a transaction of this ledger is open already; charge inside that one.")
            spent = [None if limit is None else limit.spent for limit in self._filters]
            before = _State(self._head, len(self._charges), spent)
            try:
                with chain.transaction(db):
                    self._within = True
                    yield db
            except BaseException:
                self._undo(before)
                raise
            finally:
                self._within = False

    def _charge(self, db: sqlite3.Connection, charge: Charge) -> None:
        row = self._row_of(charge.site)
        check_charge(self.run, self.sites[row], self.budgets[row], charge)
        at = charge.site, charge.t
        with ledger_errors():
            if db.execute("SELECT 1 FROM ledger WHERE site = ? AND t = ?", at).fetchone():
                raise already_charged(self.sites[row], charge.t)
        limit = self._filters[row]
        spent = None if limit is None else limit.after(charge)
        with ledger_errors():
            self._head = chain.append(db, self._head, _body(charge), at)
        self._charges.append(charge)
        if limit is not None and spent is not None:
            limit.spent = spent

    def _undo(self, before: _State) -> None:
        self._head = before.head
        del self._charges[before.charges :]
        for limit, spent in zip(self._filters, before.spent, strict=True):
            if limit is not None and spent is not None:
                limit.spent = spent

    # -- reading --------------------------------------------------------------------------------

    @property
    def head(self) -> Head:
        """How many rows there are, and the SHA-256 of the last; note it elsewhere."""
        return self._head

    @property
    def aborted(self) -> bool:
        """Whether a solve gave up."""
        return any(charge.aborted for charge in self._charges)

    def columns(self, site: int) -> Columns:
        """All charges of a site so far."""
        row = self._row_of(site)
        with self._guard:
            return Columns.of(self.sites[row], [charge for charge in self._charges if charge.site == site])

    def _row_of(self, site: int) -> int:
        for row, facts in enumerate(self.sites):
            if facts.site == site:
                return row
        raise ParameterError(f"`site` must be one of the ledger's {len(self.sites)} sites; got {site}.")

    # -- opening and closing --------------------------------------------------------------------

    def _open(self, db: sqlite3.Connection, given: dict[str, Any] | None, at_least: Head | None) -> None:
        _check_durable(db, self._readonly)
        with chain.transaction(db, "BEGIN" if self._readonly else "BEGIN IMMEDIATE"):
            if not chain.exists(db):
                _begin(db, given, self._readonly)
            bodies, self._head = chain.verify_rows(db, at_least)
        begun = bodies[0]
        if given is not None:
            check_agreement(given, begun)
        try:
            self.run = run_from(begun["run"])
            self.sites = tuple(site_from(entry) for entry in begun["sites"])
            self.budgets = tuple(budget_from(entry) for entry in begun["budgets"])
            self._charges = [Charge(**body) for body in bodies[1:]]
        except (ParameterError, KeyError, TypeError) as error:
            raise LedgerError(
                "the ledger was written in a format that this version does not know."
            ) from error
        self._filters = filters(self.run, self.sites, self.budgets)
        for facts, limit in zip(self.sites, self._filters, strict=True):
            if limit is not None:
                limit.resume([charge for charge in self._charges if charge.site == facts.site])

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            raise LedgerError("the ledger is closed; nothing may be released.")
        return self._db

    def close(self) -> None:
        """Let the next process in. Calling it again does nothing."""
        with self._guard:
            if self._db is not None and self._owned:
                self._db.close()
            self._db = None
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> SqliteLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _connect(path: Path, readonly: bool) -> sqlite3.Connection:
    # not "ro": a reader, too, must be able to undo what a crash left half done
    db = chain.connect(path, "rw" if readonly else "rwc")
    if readonly:
        db.execute("PRAGMA query_only = ON")
    return db


def _check_durable(db: sqlite3.Connection, readonly: bool) -> None:
    """A commit must be on disk when it returns."""
    if db.isolation_level is not None or db.in_transaction:
        raise LedgerError("the connection must have isolation_level=None and no open transaction.")
    with ledger_errors():
        found = db.execute("PRAGMA synchronous").fetchone()[0]
    if not readonly and found < _FULL:
        raise LedgerError(
            "the connection must have PRAGMA synchronous = FULL, or a crash could lose a charge."
        )


def _facts(run: RunFacts, sites: Sequence[SiteFacts], budget: SiteBudgets) -> dict[str, Any]:
    """The content of row 0."""
    chosen = checked_sites(run, sites)
    limits = checked_budgets(run, budget, len(chosen))
    plain = [None if limit is None else to_plain(limit) for limit in limits]
    return {"format": 1, **plain_facts(run, chosen), "budgets": plain}


def plain_facts(run: RunFacts, sites: Sequence[SiteFacts]) -> dict[str, Any]:
    """The facts of a ledger, as JSON values."""
    return {"run": to_plain(run), "sites": [to_plain(facts) for facts in sites]}


def check_agreement(
    given: dict[str, Any], begun: dict[str, Any], *, apart: tuple[str, ...] = ("versions",)
) -> None:
    """Raise unless the facts of today are those that a ledger was begun with, these names apart."""
    pairs, differ = [(given["run"], begun["run"])], []
    for part in (part for part in ("sites", "budgets") if part in given):
        here, there = given[part], begun[part]
        differ += [f"other {part}"] * (list(map(bool, here)) != list(map(bool, there)))
        pairs += [(one, other) for one, other in zip(here, there, strict=False) if one and other]
    keys = [key for one, other in pairs for key in {**one, **other} if one.get(key) != other.get(key)]
    for what in [*(f"another `{key}`" for key in keys if key not in apart), *differ]:
        raise LedgerError(f"the ledger was created with {what}; a new run needs a new ledger.")


def _body(charge: Charge) -> dict[str, Any]:
    """A charge as a row; it notes a failed solve."""
    body = charge._asdict()
    return body if charge.aborted else {key: value for key, value in body.items() if key != "aborted"}


def _begin(db: sqlite3.Connection, facts: dict[str, Any] | None, readonly: bool) -> None:
    if facts is None or readonly:
        raise LedgerError("there is no ledger here yet; open it with `run` and `sites` to create one.")
    chain.create(db)
    chain.append(db, chain.EMPTY, facts)
