"""The audit log of a table: every answer that its owner's site gave to a job, hash-chained like a ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core.errors import LedgerError
from ...privacy.ledger import chain
from ...privacy.ledger.budget_file import open_rows
from ..files.database import wrong_ledger_as

FORMAT = "taciturn-audit/1"


@dataclass(frozen=True)
class AuditLog:
    """The file beside the account of a table; a row that was changed or removed is noticed."""

    path: Path

    def entries(self) -> list[dict[str, Any]]:
        """All answers, in order; none where there is no file yet."""
        if not self.path.exists():
            return []
        with self._rows() as db:
            return self._read(db)[0]

    def append(self, entry: dict[str, Any]) -> None:
        """One more answer, on disk on return."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._rows(create=True) as db:
            if not chain.exists(db):
                chain.create(db)
                chain.append(db, chain.EMPTY, {"format": FORMAT})
            _, head = self._read(db)
            chain.append(db, head, {"at": datetime.now(UTC).isoformat(timespec="seconds"), **entry})

    @contextmanager
    def _rows(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        with wrong_ledger_as(self.path), open_rows(self.path, create=create) as db:
            yield db

    def _read(self, db: sqlite3.Connection) -> tuple[list[dict[str, Any]], chain.Head]:
        if not chain.exists(db):
            raise LedgerError("is not an audit log: it was emptied, or is another file.")
        bodies, head = chain.verify_rows(db)
        if not bodies or bodies[0].get("format") != FORMAT:
            raise LedgerError("is not an audit log: it was emptied, or is another file.")
        return bodies[1:], head
