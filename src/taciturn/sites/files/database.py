"""The file of a site, looked at before it is read: what is wrong with it stays wrong, in one line."""

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
    """The file, those that SQLite keeps beside it and its folder are what they must be, for this user."""
    state, rights = path.parent, os.R_OK | (os.W_OK if write else 0)
    may = "read it and write to it" if write else "read it"
    if state.exists() and not state.is_dir():
        raise WrongFiles(f"{state}: `state` must be a folder or must not exist yet.")
    if state.exists() and not os.access(state, rights | os.X_OK):
        raise WrongFiles(f"{state}: this user may not {may}.")
    for place in (path.with_name(path.name + ending) for ending in ("", "-wal", "-shm", ".lock")):
        if place.exists() and not place.is_file():
            raise WrongFiles(f"{place}: must be a file or must not exist yet.")
        if place.exists() and not os.access(place, rights):
            raise WrongFiles(f"{place}: this user may not {may}.")


def check_ledger(path: Path) -> None:
    """The account of a table is a file that this user may write, or can be made; nothing is left of the look.

    An empty file is refused: what was charged to it is lost from the file, and was spent all the same.
    """
    try:
        if path.exists() and not path.is_file():
            raise WrongFiles(f"`budget.ledger`: {path} must be a file or must not exist yet.")
        if path.exists() and path.stat().st_size == 0:
            raise WrongFiles(
                f"`budget.ledger`: {path} is empty: its charges are lost. Restore the right file; "
                "if it never had charges, delete it."
            )
        if path.exists() and not os.access(path, os.R_OK | os.W_OK):
            raise WrongFiles(f"`budget.ledger`: this user may not read {path} and write to it.")
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        with tempfile.TemporaryDirectory(prefix=".", dir=folder):
            pass
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):  # a full disk is no wrong file
            raise WrongFiles(
                f"`budget.ledger`: {path} cannot be written ({error.strerror}); name a file in a folder that "
                "this user may write in."
            ) from error


def check_form(db: sqlite3.Connection, path: Path, form: int) -> None:
    """The file was written in the one form that this release knows."""
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if found != form:
        raise WrongFiles(
            f"{path}: was written in format {found} by another release; this one knows only format {form}. "
            "End the run with the release that started it."
        )


@contextmanager
def wrong_ledger_as(path: Path) -> Iterator[None]:
    """A ledger that is damaged, altered or another's is a wrong file; one that is held or full is not."""
    try:
        yield
    except LedgerError as error:
        if isinstance(error.__cause__, sqlite3.OperationalError | OSError):
            raise
        raise WrongFiles(f"{path}: {error}") from error
