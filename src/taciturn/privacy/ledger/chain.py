"""Rows in SQLite that form a hash chain. The chain reveals if an earlier row was changed.

hash(n) = SHA-256(hash(n-1) + canonical JSON of row n)
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ...core.canonical import canonical
from ...core.errors import LedgerError

_ORIGIN = hashlib.sha256(b"taciturn ledger 1").hexdigest()
_SCHEMA = (
    "CREATE TABLE ledger (seq INTEGER PRIMARY KEY, site INTEGER, t INTEGER, body TEXT NOT NULL, "
    "hash TEXT NOT NULL, UNIQUE (site, t))",
    "CREATE TABLE ledger_head (one INTEGER PRIMARY KEY CHECK (one = 1), rows INTEGER NOT NULL, "
    "hash TEXT NOT NULL)",
    "CREATE TRIGGER ledger_keeps BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER ledger_holds BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'append-only'); END",
)


UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors of reading rows with valid hashes, but with entries that this version does not know."""


class Head(NamedTuple):
    """The number of rows and the hash of the last row. A head that was noted earlier reveals missing rows."""

    rows: int
    digest: str


EMPTY = Head(0, _ORIGIN)


@contextmanager
def ledger_errors() -> Iterator[None]:
    """Turn an SQLite error, such as a full disk or a damaged file, into a `LedgerError` of one line."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise LedgerError(
            f"the ledger did not accept the charge ({error}); nothing may be released."
        ) from error
    except sqlite3.Error as error:
        raise LedgerError(
            f"the ledger cannot be used: {error}; without it nothing may be released."
        ) from error


def connect(path: Path, mode: str, *, patience: float = 5.0) -> sqlite3.Connection:
    """Open the file; `mode` "rwc" creates it if needed. When a commit returns, its changes are on disk."""
    with ledger_errors():
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=patience)
        db.execute("PRAGMA synchronous = EXTRA")  # a commit survives a power cut
    return db


@contextmanager
def transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
    """One transaction: at the end of the block all changes are on disk, or, after an error, none is."""
    with ledger_errors():
        db.execute(begin)
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # SQLite itself rolls back if the disk is full
                db.execute("ROLLBACK")
            raise


def exists(db: sqlite3.Connection) -> bool:
    """Whether the file contains a ledger."""
    table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'ledger'"
    return db.execute(table).fetchone() is not None


def create(db: sqlite3.Connection) -> None:
    """Create empty tables, within the caller's transaction."""
    for statement in _SCHEMA:
        db.execute(statement)
    db.execute("INSERT INTO ledger_head VALUES (1, ?, ?)", EMPTY)


def stored_head(db: sqlite3.Connection) -> Head:
    """The head that is stored in the file."""
    row = db.execute("SELECT rows, hash FROM ledger_head").fetchone()
    if row is None:
        raise LedgerError(
            "the ledger was altered: its head (number of rows, hash of the last row) is missing."
        )
    if not isinstance(row[0], int) or not isinstance(row[1], str):
        raise LedgerError("the ledger was altered: its head is not a number of rows and a hash.")
    return Head(*row)


def append(
    db: sqlite3.Connection, head: Head, body: dict[str, Any], at: tuple[int, int] | None = None
) -> Head:
    """Append a row after `head`, within the caller's transaction."""
    if stored_head(db) != head:
        raise LedgerError("another process changed the ledger while it was open; nothing may be released.")
    text = canonical(body)
    after = Head(head.rows + 1, _link(head.digest, text))
    site, t = at or (None, None)
    db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", (head.rows, site, t, text, after.digest))
    db.execute("UPDATE ledger_head SET rows = ?, hash = ?", after)
    return after


def verify_rows(db: sqlite3.Connection, at_least: Head | None = None) -> tuple[list[dict[str, Any]], Head]:
    """The content of every row, and the head. Raises at the first row that does not fit the chain, if there
    is no row, if the stored head differs from the last row, or if no row gives the head `at_least`."""
    head, seen, bodies = EMPTY, at_least is None or at_least == EMPTY, []
    for seq, site, t, text, stated in db.execute("SELECT seq, site, t, body, hash FROM ledger ORDER BY seq"):
        if seq != head.rows or stated != _link(head.digest, str(text)):
            raise LedgerError(f"the ledger was altered: row {head.rows} does not follow from the row before.")
        head = Head(head.rows + 1, stated)
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise LedgerError(f"the ledger was altered: row {seq} is not a JSON object.")
        if (site, t) != (body.get("site"), body.get("t")):
            raise LedgerError(f"the ledger was altered: row {seq} is filed under another site or round.")
        bodies.append(body)
        seen = seen or head == at_least
    if (said := stored_head(db)) != head:
        raise LedgerError(f"the ledger was altered: it states {said.rows} rows and has {head.rows}.")
    if not bodies:
        raise LedgerError("the ledger was altered: all of its rows are missing.")
    if not seen and at_least is not None:
        raise LedgerError(
            f"the ledger has {head.rows} rows; row {at_least.rows}, which was noted earlier, is missing or "
            "different. The ledger was truncated or restored from a backup. If the run went on with it, a "
            "round could be released twice."
        )
    return bodies, head


def _link(before: str, text: str) -> str:
    return hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()
