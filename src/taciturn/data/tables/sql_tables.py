"""A table from a database query, read once, in one snapshot, through SQLAlchemy.

The query and the address of the database are private to the owner of the rows. No error, log or `repr` shows
them. Error messages of the database are not shown either, because they may quote the query and the address.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from ...core.canonical import digest
from ...core.errors import DataError, MissingExtra
from .table_files import Columns

_SNAPSHOT = {"sqlite": "SERIALIZABLE", "oracle": "SERIALIZABLE", "mssql": "SNAPSHOT"}  # isolation levels


@dataclass(frozen=True, eq=False)
class TableQuery:
    """The rows that a query returns; `url` is the address of the database, as in SQLAlchemy.

    A relative path of an SQLite file is relative to `folder`.
    """

    url: str = field(repr=False)
    query: str = field(repr=False)
    folder: Path = Path()

    suffix = ".sql"

    def __str__(self) -> str:
        return "the query in `database`"

    @cached_property
    def columns(self) -> Columns:
        """All columns, read in one transaction. They are cached, so that every call gives the same rows."""
        parsed = self._parsed
        names, rows = self._guarded(
            lambda: self._read(parsed), "refused the query; try it with the database's own client"
        )
        if len(set(names)) < len(names):
            raise DataError(f"{self} must return each column once; rename columns with AS.")
        cells = [[float(cell) if isinstance(cell, Decimal) else cell for cell in row] for row in rows]
        return dict(zip(names, zip(*cells, strict=True), strict=True)) if cells else {n: () for n in names}

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the kind, host, port and name of the database.

        A site uses this hash to find the account of a table (the file with all privacy costs so far). The
        hash does not depend on user, password and query: another query may return rows of the same people,
        and must use the same account.
        """
        url = self._parsed
        return digest(["database", url.get_backend_name(), url.host, url.port, url.database])

    @cached_property
    def _parsed(self) -> Any:
        try:
            from sqlalchemy.engine import make_url
        except ImportError as error:
            raise MissingExtra("sqlalchemy", "sql") from error
        url = self._guarded(
            lambda: make_url(self.url), "needs a `url` such as postgresql+psycopg://user@host/name"
        )
        if url.get_backend_name() == "sqlite":
            path = (self.folder / (url.database or "")).resolve()
            if not path.is_file():
                raise DataError(f"{self}: there is no such SQLite file; correct `url` or restore the file.")
            return url.set(database=str(path))
        return url

    def _read(self, url: Any) -> tuple[list[str], list[Any]]:
        from sqlalchemy import create_engine, text
        from sqlalchemy.pool import NullPool

        kind = url.get_backend_name()
        options: dict[str, Any] = {"poolclass": NullPool, "hide_parameters": True}
        if kind == "sqlite":  # open the file read-only: do not create it or write to it
            where = f"{Path(url.database).as_uri()}?mode=ro"
            options["creator"] = lambda: sqlite3.connect(where, uri=True)
        engine = create_engine(url, **options)
        level = _SNAPSHOT.get(kind, "REPEATABLE READ")
        only = {"postgresql_readonly": True} if kind == "postgresql" else {}
        client = "the connection; try it with the database's own client"
        with self._guarded(engine.connect, f"refused {client}") as plain:
            result = plain.execution_options(isolation_level=level, **only).execute(text(self.query))
            if not result.returns_rows:
                raise DataError(f"{self} must be a SELECT statement that returns rows.")
            return list(result.keys()), list(result.fetchall())

    def _guarded(self, act: Callable[[], Any], what: str) -> Any:
        """Run `act`. If the database fails, show only the type of the error: its text may quote the query."""
        try:
            return act()
        except DataError:
            raise
        except ImportError as error:
            driver = error.name or ("psycopg" if "psycopg" in str(error) else "a driver")
            package = "'psycopg[binary]'" if driver == "psycopg" else driver
            raise DataError(
                f"{self} needs {driver}, which is not installed or cannot be loaded; run: "
                f"pip install {package}"
            ) from None
        except Exception as error:
            kind = type(error).__name__
            code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)
            if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                what = "is locked by another program; run again when that program is done"
        raise DataError(f"{self}: the database {what} ({kind}).")
