"""The account of a table: one budget for all jobs that ever use the table, in a file of its own.

A run is charged in full, right before its first message is stored, and stays charged however it ends. Before
that it costs nothing: a site that only connected has released nothing. Each run is charged only once, even if
the site is restarted or restored. Estimators and training jobs may use the same file: it is a
`taciturn.Budget`.

If site.toml has no `budget.ledger`, the account is in the user's data folder, in a subfolder that is named
by a hash of where the rows are (file or database). If the data folder has an account of another table with
the same columns, no new account is created: the new table may be a copy of the other, and a copy must not get
its own budget.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ...core.canonical import digest
from ...core.errors import LedgerError, WrongFiles
from ...core.files import write_whole
from ...core.formatting import format_at_least, format_cost, format_given
from ...privacy.facts import RunFacts
from ...privacy.ledger.active import active_budget
from ...privacy.ledger.budget import Budget
from ...privacy.ledger.pricing import Planned
from ..files.database import check_ledger, wrong_ledger_as
from ..files.site import Site
from .high_water import HighWaterMark

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
    """Refuse a new account for a table with the same columns as a table that has an account."""
    if site.file.budget.ledger is not None or place.exists():
        return
    columns = digest_columns(site.rows.column_names())
    for other in sorted(place.parent.parent.glob(f"*/{FACTS}")):
        if other.parent != place.parent and columns and _facts(other).get("columns") == columns:
            raise WrongFiles(
                f"`budget.ledger` must be given: a table with the same columns has an account at "
                f'{other.parent / ACCOUNT}. If the rows are about the same people, write ledger = "'
                f'{other.parent / ACCOUNT}" in `budget`; if not, write the path of a new file as `ledger`.'
            )


def make_place(site: Site, place: Path) -> None:
    """Create the folder of an account, private to its user, with hashes that identify its table."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if site.file.budget.ledger is None and not (place.parent / FACTS).exists():
            facts = {"rows": site.rows.fingerprint, "columns": digest_columns(site.rows.column_names())}
            write_whole(place.parent / FACTS, json.dumps(facts) + "\n")
    except OSError as error:
        raise LedgerError(f"the folder of {place} cannot be created: {error.strerror}.") from error


def digest_columns(names: Sequence[str]) -> str:
    """A hash of the columns of a table, in any order; empty for arrays, which have no names."""
    return digest(sorted(names)) if names else ""


def _facts(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


log = logging.getLogger("taciturn.site")


@dataclass(frozen=True)
class AccountSeen:
    """The content of an account: the number of runs, their total cost, and what is left for one more run."""

    runs: int
    spent: float
    left: float
    epsilon: float
    unit: str
    place: str

    def line(self) -> str:
        """The content as one line of text."""
        left = f"{format_at_least(self.left)} left of {format_given(self.epsilon)} for any one {self.unit}"
        runs = f"{self.runs} run{'s' * (self.runs != 1)}"
        return f"account of the table: {runs} spent epsilon {format_cost(self.spent)}, {left}"


@dataclass
class Account:
    """The account of one site's table.

    `_looked` : for each run, the state of the file when it last contained the run. An unchanged file still
    contains the run.
    """

    site: Site
    place: Path
    _looked: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def marks(self) -> HighWaterMark:
        """The high-water marks of the runs that use this table."""
        return HighWaterMark(self.beside("marks"))

    def beside(self, name: str) -> Path:
        """A file or folder of the same table, next to the account."""
        return self.place.with_name(f"{self.place.stem}-{name}")

    def check_place(self) -> None:
        """Check, before the site connects, that the account can be charged."""
        around = active_budget()
        if around is not None and not around.is_at(self.place):
            raise LedgerError(
                f"the budget {around.path} is open, but a site charges the account of its table, "
                f"{self.place}; run the site outside of the `with` block. Nothing was released."
            )
        check_ledger(self.place)
        check_copies(self.site, self.place)
        if self.place.exists():
            self._open()

    def can_pay(self, planned: Planned, what: str) -> float:
        """What would be left after a run; `BudgetExceeded` if the account cannot pay for the run.

        Nothing is charged, and no account is created.
        """
        self.check_place()
        if self.place.exists():
            return self._open().check(planned, what)
        with tempfile.TemporaryDirectory() as folder:
            return self._begin(Path(folder) / self.place.name).check(planned, what)

    def charge_once(self, run: str, planned: Planned, what: str) -> None:
        """Charge the whole run, right before its first message is stored; a second call changes nothing."""
        self.check_place()
        if not self.place.exists():
            log.warning(
                "created a new account for this table: %s; if the table has an older account, stop and write "
                "its path in `budget.ledger`",
                self.place,
            )
            make_place(self.site, self.place)
        with wrong_ledger_as(self.place):
            self._begin(self.place).reserve(planned, what, run=run)
        self.check(run)

    def check(self, run: str) -> None:
        """Raise `WrongFiles` if the account no longer contains a run that was charged to it.

        In that case the file was deleted, emptied, restored or replaced. The file is read again only if it
        has changed, for example because another job was charged to it.
        """
        found = self._look()  # taken before reading, so that a change meanwhile is noticed next time
        if not found or found != self._looked.get(run):
            self._read(run)
            self._looked[run] = found

    def holds(self, run: str) -> bool:
        """Whether a run was charged to the account."""
        return self.place.exists() and any(other.run == run for other in self._open().runs)

    def unfinished(self, what: str, run: str) -> bool:
        """Whether another run of the same job was charged and has not ended."""
        if not self.place.exists():
            return False
        return any(r.what == what and r.run != run and not r.finished for r in self._open().runs)

    def finish(self, run: str) -> None:
        """Note that the run has ended; its cost does not change."""
        account = self._read(run)
        if any(other.run == run and not other.finished for other in account.runs):
            account.finish(run)

    def seen(self) -> AccountSeen:
        """The current content of the account; an account that does not exist yet has the whole budget."""
        place, limits = str(self.place), self.site.file.budget
        if not self.place.exists():
            return AccountSeen(0, 0.0, limits.epsilon, limits.epsilon, limits.unit, place)
        file = self._open()
        return AccountSeen(len(file.runs), file.spent, file.left, file.epsilon, file.unit, place)

    def _open(self) -> Budget:
        with wrong_ledger_as(self.place):
            return self._begin(self.place)

    def _begin(self, place: Path) -> Budget:
        limits = self.site.file.budget
        return Budget(place, limits.epsilon, limits.delta, unit=limits.unit, large_delta=limits.large_delta)

    def _read(self, run: str) -> Budget:
        """Read the account, which must contain the run."""
        if self._look():
            with wrong_ledger_as(self.place):
                account = Budget(self.place)
                if any(other.run == run for other in account.runs):
                    return account
        raise WrongFiles(
            f"{self.place} does not contain this run, which was charged to it. The file was deleted, "
            "emptied, restored from a backup or replaced. Nothing more is released; restore the correct file."
        )

    def _look(self) -> tuple[int, ...]:
        """The identity and change time of the file; empty if the file is missing or empty."""
        try:
            found = self.place.stat()
        except OSError:
            return ()
        if not found.st_size:
            return ()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def judged(run: RunFacts, colluding: int | None) -> RunFacts:
    """The facts of a run under the owner's assumption that `colluding` other sites collude (None: all).

    If the job assumes more colluders than the owner, the job's number is used.
    """
    if run.honest(0) == 1:  # the cost does not rely on the noise of other sites
        return run
    if colluding is None:
        return replace(run, colluding=None)
    claimed = run.sites - 1 if run.colluding is None else run.colluding
    return replace(run, colluding=min(run.sites - 1, max(claimed, colluding)))


def open_account(site: Site) -> Account | None:
    """The account of a site's table; None for a rehearsal, which is not charged."""
    return None if site.job.simulated else Account(site, account_place(site))
