"""A ledger on disk for real runs: an SQLite file with synced commits, whose rows form a hash chain.

Row 0 contains the facts, and each further row contains one charge. Opening a ledger verifies the chain, which
detects changed, inserted, deleted and reordered rows. The file also contains the head of the chain: the
number of rows and the hash of the last row. The head reveals whether the last rows are missing. The file
alone cannot show that it was restored from a backup, or that rows and head were rewritten together. So store
`ledger.head` outside the file (a certificate states this head too), and pass it as `at_least` when you open
the ledger.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

from ...core.errors import LedgerError, ParameterError
from ...core.files import LockFile
from ..facts import Charge, RunFacts, SiteBudget, SiteFacts
from ..facts_json import budget_from, run_from, site_from, to_plain
from . import chain
from .chain import Head, ledger_errors
from .memory import Book, Ledger, MemoryLedger, SiteBudgets, check_charge, checked_budgets, checked_sites

_FULL = 2  # with this value of PRAGMA synchronous, or a larger one, a commit survives a power cut


class SqliteLedger(Book):
    """A ledger on disk. Use it in a `with` block; only one process at a time may charge it.

    Parameters
    ----------
    target : a path, or an open connection (`isolation_level=None`) to the file in which a site stores its
        state. With a connection, the caller must exclude other processes and close the connection.
    run, sites, budget : the facts of a new ledger. For an existing ledger they may be left out. If given,
        they must be equal to the facts that the ledger was created with (except for versions of software).
    at_least : a value of `head` that was noted earlier. Raises `LedgerError` if this row is missing.
    readonly : True opens the ledger for reading only, which is allowed while another process charges it.
    """

    _head: Head
    _new: list[Charge]
    """The charges of the open transaction."""

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
        self._file: LockFile | None = None
        self._db: sqlite3.Connection | None = None
        try:
            if isinstance(target, sqlite3.Connection):
                self._db = target
            else:
                self._file = None if readonly else LockFile(Path(target))
                # "rw" also for a reader, which must be able to roll back a transaction after a crash
                self._db = chain.connect(Path(target), "rw" if readonly else "rwc")
                if readonly:
                    self._db.execute("PRAGMA query_only = ON")
            self._open(self._db, given, at_least)
        except BaseException:
            self.close()
            raise

    # -- charging -------------------------------------------------------------------------------

    def _store(self, charges: Sequence[Charge]) -> None:
        """Write the charges to the disk; inside a `transaction`, they are on disk at its end."""
        with nullcontext(self._connection()) if self._within else self.transaction() as db:
            admitted = [self._admit(charge) for charge in charges]  # if one is refused, nothing is written
            for charge, spent in zip(charges, admitted, strict=True):
                body = charge._asdict()
                if not charge.aborted:  # the row has this entry only if the solver failed
                    del body["aborted"]
                with ledger_errors():
                    self._head = chain.append(db, self._head, body, (charge.site, charge.t))
                self._record(charge, spent)
                self._new.append(charge)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Store charges, and rows that the caller writes to its own tables, in one transaction.

        Release after the block, never inside it: an error inside the block undoes the charges, which is
        allowed only if nothing was released.
        """
        with self._guard:
            db = self._connection()
            if self._readonly:
                raise LedgerError("the ledger was opened read-only; nothing may be released.")
            if self._within:
                raise LedgerError("a transaction of this ledger is open already; charge inside it.")
            head, aborted, self._new = self._head, self.aborted, []
            spent = [None if limit is None else limit.spent for limit in self._filters]
            try:
                with chain.transaction(db):
                    self._within = True
                    yield db
            except BaseException:
                self._head, self.aborted = head, aborted
                for charge in self._new:
                    self._log[self._row_of(charge.site), charge.t - 1] = (False, 0.0, 0.0, 0.0, 0)
                for limit, before in zip(self._filters, spent, strict=True):
                    if limit is not None and before is not None:
                        limit.spent = before
                raise
            finally:
                self._within = False

    # -- reading --------------------------------------------------------------------------------

    @property
    def head(self) -> Head:
        """The number of rows and the SHA-256 of the last row. Store both outside the file."""
        return self._head

    # -- opening and closing --------------------------------------------------------------------

    def _open(self, db: sqlite3.Connection, given: dict[str, Any] | None, at_least: Head | None) -> None:
        _check_durable(db, self._readonly)
        with chain.transaction(db, "BEGIN" if self._readonly else "BEGIN IMMEDIATE"):
            if not chain.exists(db):
                if given is None or self._readonly:
                    raise LedgerError("there is no ledger here yet; to create one, give `run` and `sites`.")
                chain.create(db)
                chain.append(db, chain.EMPTY, given)
            bodies, self._head = chain.verify_rows(db, at_least)
        begun = bodies[0]
        if given is not None:
            check_agreement(given, begun)
        try:
            sites = [site_from(entry) for entry in begun["sites"]]
            limits = [budget_from(entry) for entry in begun["budgets"]]
            super().__init__(run_from(begun["run"]), sites, limits)
            self._lock = self._guard  # other threads cannot read charges of an open transaction
            for body in bodies[1:]:
                self._resume(Charge(**body))
        except (LedgerError, *chain.UNREADABLE) as error:
            raise LedgerError(
                "the ledger was written in a format that this version does not know."
            ) from error

    def _resume(self, charge: Charge) -> None:
        """Record a charge that was read from the file. The charge is not compared with the budget again."""
        row = self._row_of(charge.site)
        check_charge(self.run, self.sites[row], self.budgets[row], charge)
        limit = self._filters[row]
        self._record(charge, None if limit is None else limit.plus(charge))

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            raise LedgerError("the ledger is closed; nothing may be released.")
        return self._db

    def close(self) -> None:
        """Close the ledger, so that another process may open it. A second call does nothing."""
        with self._guard:
            if self._db is not None and self._owned:
                self._db.close()
            self._db = None
            if self._file is not None:
                self._file.release()

    def __enter__(self) -> SqliteLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_durable(db: sqlite3.Connection, readonly: bool) -> None:
    """Raise unless each commit of the connection is on disk when it returns, and no transaction is open."""
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
    """The facts of the run and of its sites, as JSON values."""
    return {"run": to_plain(run), "sites": [to_plain(facts) for facts in sites]}


def check_agreement(
    given: dict[str, Any], begun: dict[str, Any], *, apart: tuple[str, ...] = ("versions",)
) -> None:
    """Raise unless the facts `given` are equal to the facts `begun` that a ledger was created with.

    The values under the keys in `apart` may differ.
    """
    pairs, differ = [(given["run"], begun["run"])], []
    for part in (part for part in ("sites", "budgets") if part in given):
        here, there = given[part], begun[part]
        differ += [f"other {part}"] * (list(map(bool, here)) != list(map(bool, there)))
        pairs += [(one, other) for one, other in zip(here, there, strict=False) if one and other]
    keys = [key for one, other in pairs for key in {**one, **other} if one.get(key) != other.get(key)]
    for what in [*(f"another `{key}`" for key in keys if key not in apart), *differ]:
        raise LedgerError(f"the ledger was created with {what} than this run has; use a new ledger.")


LedgerLike = str | PathLike[str] | Ledger
"""A path, for a ledger on disk, or an open ledger."""


@contextmanager
def open_ledger(
    target: LedgerLike | None, run: RunFacts, sites: Sequence[SiteFacts], budget: SiteBudget | None = None
) -> Iterator[Ledger]:
    """The ledger of a run with these facts. A ledger that this function opens is closed after the block.

    An open ledger that the caller gives must have equal facts, apart from names of sites, marks and versions.
    """
    if isinstance(target, Ledger):
        if budget is not None:
            raise ParameterError("`budget` must be left out: the open `ledger` already states its budgets.")
        apart = ("versions", "marks", "name")
        check_agreement(plain_facts(run, sites), plain_facts(target.run, target.sites), apart=apart)
        yield target
    elif isinstance(target, str | PathLike):
        with SqliteLedger(Path(target), run, sites, budget) as durable:
            yield durable
    elif target is None:
        yield MemoryLedger(run, sites, budget)
    else:
        raise ParameterError(f"`ledger` must be a path or a ledger; got {type(target).__name__}.")
