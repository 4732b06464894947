"""Where the account of a table lies: a place that follows from the table, not from a job's folder.

Without `budget.ledger` it is in the user's data folder, under a hash of where the rows are. A table of which
a copy has an account there already is refused: a copy of the rows must not get a budget of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from ...core.canonical import digest
from ...core.errors import LedgerError, WrongFiles
from ...core.files import write_whole
from ..files.site import Site

FACTS = "table.json"
ACCOUNT = "budget.sqlite"


def data_folder() -> Path:
    """The folder of this user that outlives jobs: $XDG_DATA_HOME/taciturn, or ~/.local/share/taciturn."""
    named = os.environ.get("XDG_DATA_HOME", "")
    base = Path(named) if os.path.isabs(named) else Path.home() / ".local" / "share"
    return base / "taciturn"


def account_place(site: Site) -> Path:
    """The file of the account of this site's table."""
    ledger = site.file.budget.ledger
    if ledger is not None:
        return site.path(ledger).absolute()
    return data_folder() / "tables" / site.rows.fingerprint[:32] / ACCOUNT


def check_copies(site: Site, place: Path) -> None:
    """Refuse a new account for a table whose columns are those of a table that has one."""
    if site.file.budget.ledger is not None or place.exists():
        return
    columns = digest_columns(site.rows.column_names())
    for other in sorted(place.parent.parent.glob(f"*/{FACTS}")):
        if other.parent != place.parent and columns and _facts(other).get("columns") == columns:
            raise WrongFiles(
                f"`budget.ledger`: must be given: a table with the same columns has an account at "
                f'{other.parent / ACCOUNT}. If the rows are about the same people, write ledger = "'
                f'{other.parent / ACCOUNT}" in `budget`; if not, write the path of a new file as `ledger`.'
            )


def make_place(site: Site, place: Path) -> None:
    """The folder of an account, for its user alone, and what the account is about, as hashes."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if site.file.budget.ledger is None and not (place.parent / FACTS).exists():
            facts = {"rows": site.rows.fingerprint, "columns": digest_columns(site.rows.column_names())}
            write_whole(place.parent / FACTS, json.dumps(facts) + "\n")
    except OSError as error:
        raise LedgerError(f"the folder of {place} cannot be made: {error.strerror}.") from error


def digest_columns(names: Sequence[str]) -> str:
    """A hash of the columns of a table, whatever their order; empty for arrays, whose names say nothing."""
    return digest(sorted(names)) if names else ""


def _facts(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
