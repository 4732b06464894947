"""Checks of a site's SQLite files: the state file and the account. Each problem gives a one-line error."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...core.errors import LedgerError, WrongFiles


def check_place(path: Path, *, write: bool = False) -> None:
    """Check that this user can read the state folder and its SQLite files and, if `write`, write to them."""
    state, rights = path.parent, os.R_OK | (os.W_OK if write else 0)
    may = "read it and write to it" if write else "read it"
    if state.exists() and not state.is_dir():
        raise WrongFiles(f"{state}: `state` must be a folder or must not exist yet.")
    if state.exists() and not os.access(state, rights | os.X_OK):
        raise WrongFiles(f"{state}: this user may not {may}.")
    for place in (path.with_name(path.name + ending) for ending in ("", "-wal", "-shm", ".lock")):
        if place.exists() and not place.is_file():
            raise WrongFiles(f"{place} must be a file or must not exist yet.")
        if place.exists() and not os.access(place, rights):
            raise WrongFiles(f"{place}: this user may not {may}.")


def check_ledger(path: Path) -> None:
    """Check that the account, which records what all jobs on a table have cost, can be written or created.

    An empty file is refused, because it may have lost charges.
    """
    try:
        if path.exists() and not path.is_file():
            raise WrongFiles(f"`budget.ledger`: {path} must be a file or must not exist yet.")
        if path.exists() and path.stat().st_size == 0:
            raise WrongFiles(
                f"`budget.ledger`: {path} is empty: its charges are lost. Restore the file with the "
                "charges; if there never were any, delete this file."
            )
        if path.exists() and not os.access(path, os.R_OK | os.W_OK):
            raise WrongFiles(f"`budget.ledger`: this user may not read {path} and write to it.")
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        with tempfile.TemporaryDirectory(prefix=".", dir=folder):
            pass
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):  # a full disk is not a fault of the file
            raise WrongFiles(
                f"`budget.ledger`: {path} cannot be written ({error.strerror}); name a file in a folder that "
                "this user may write to."
            ) from error


def check_form(db: sqlite3.Connection, path: Path, form: int) -> None:
    """Check that the file has the format of this release."""
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if found != form:
        raise WrongFiles(
            f"{path} was written in format {found} by another release; this release reads only format "
            f"{form}. Finish the run with the release that started it."
        )


@contextmanager
def unusable_named(path: Path) -> Iterator[None]:
    """Add the path to an error about a full disk or a locked file."""
    try:
        yield
    except LedgerError as error:
        if not isinstance(error.__cause__, sqlite3.OperationalError | OSError):
            raise
        raise LedgerError(_named(path, error)) from error.__cause__


@contextmanager
def wrong_ledger_as(path: Path) -> Iterator[None]:
    """Turn errors about the ledger into `WrongFiles`, except those about a locked file or a full disk."""
    try:
        with unusable_named(path):
            yield
    except LedgerError as error:
        if isinstance(error.__cause__, sqlite3.OperationalError | OSError):
            raise
        raise WrongFiles(_named(path, error)) from error


def _named(path: Path, error: LedgerError) -> str:
    told = str(error)
    return told if told.startswith(str(path)) else f"{path}: {told}"
