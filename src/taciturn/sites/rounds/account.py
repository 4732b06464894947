"""The account of a table: one budget for all jobs that ever used it, in a file of its own.

A run is charged to it whole, when everybody is there and before its first round, and stays charged however it
ends. Which number it has there is kept in the site's state, so that a restart pays once; a state that was
lost has lost that too, and the run that begins anew is charged anew. Estimators, training jobs and
evaluations may use the same file: it is a `taciturn.Budget`.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import LedgerError, TaciturnError, WrongFiles
from ...privacy.accounting.shown import rounded_down
from ...privacy.ledger.budget import Budget
from ..files.database import check_ledger, wrong_ledger_as
from .prepare import Ready
from .store import SiteStore

log = logging.getLogger("taciturn.site")


def account_place(ready: Ready) -> Path | None:
    """Where the account of this site's table is; None where none is kept.

    A job with a seed is a rehearsal, which protects nobody and which no budget can pay for.
    """
    ledger = ready.site.file.budget.ledger
    return None if ledger is None or ready.site.job.simulated else ready.site.path(ledger)


def open_account(ready: Ready, place: Path) -> Budget:
    """The budget of this site's table, made where there is none yet."""
    terms = ready.site.file.budget
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise LedgerError(f"the folder of {place} cannot be made: {error.strerror}.") from error
    with wrong_ledger_as(place):
        return Budget(place, terms.epsilon, terms.delta, large_delta=terms.large_delta)


def check_account(ready: Ready, store: SiteStore[Any]) -> None:
    """Before anybody is met: an account that cannot be charged, or is damaged, is a wrong file."""
    place = account_place(ready)
    if place is not None and store.paid() is None:
        check_ledger(place)
        if place.exists():
            open_account(ready, place)


def pay(ready: Ready, store: SiteStore[Any]) -> None:
    """Charge the whole run to the account, once; `BudgetExceeded` where it would pass the budget.

    From then on no round is released unless the account still holds the run: `WrongFiles`.
    """
    number, place = store.paid(), account_place(ready)
    if number is None and place is not None:
        check_ledger(place)
        if not place.exists():
            log.warning("a new account of this table is begun: %s; was there none before this job?", place)
        number = open_account(ready, place).reserve(ready.forecast(), _what(ready))
        store.note_paid(number)
    if number is not None:
        entry = Entry(place, number)
        entry.check()
        store.before_release = entry.check


@dataclass
class Entry:
    """A run in the account of its table, looked for again wherever the file is not as it was `seen`.

    An account that lost a run was deleted, emptied, put back, or is another one. Another job that pays into
    it changes the file as well: then it is read, and holds the run. Without a change a look is one `stat`.
    """

    place: Path | None
    number: str
    seen: tuple[int, ...] = ()

    def check(self) -> None:
        """`WrongFiles` where the account no longer holds the run."""
        found = self._look()  # before it is read: what changes meanwhile is seen the next time
        if found != self.seen or not found:
            self.read()
            self.seen = found

    def read(self) -> Budget:
        """The account, which holds the run."""
        if self.place is not None and self._look():
            with wrong_ledger_as(self.place):
                account = Budget(self.place)
                if any(run.run == self.number for run in account.runs):
                    return account
        raise WrongFiles(
            f"{self.place or '`budget.ledger`'}: does not hold this run, which was charged to it: it was "
            "deleted, emptied, put back from a backup, or is another file. Nothing more is released; put the "
            "right one back."
        )

    def _look(self) -> tuple[int, ...]:
        """What no other file has, and what every change to this one moves; nothing where there is none."""
        try:
            found = self.place.stat() if self.place is not None else None
        except OSError:
            return ()
        if found is None or not found.st_size:
            return ()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def settle(ready: Ready, store: SiteStore[Any]) -> None:
    """Note in the account, which must still hold it, that the run has come to its end; what it cost stays."""
    number = store.paid()
    if number is None:
        return
    account = Entry(account_place(ready), number).read()
    if any(run.run == number and not run.finished for run in account.runs):
        account.finish(number)


def foresee(ready: Ready) -> list[tuple[bool, str]]:
    """Whether the account will pay for the run, tried on a copy of it, and in which words."""
    place = account_place(ready)
    if ready.site.job.simulated:
        return []
    if place is None:
        return [(True, "the budget is for this job alone; with a `ledger`, one for all jobs of this table")]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "account.sqlite"
        try:
            check_ledger(place)
            if place.exists():
                shutil.copyfile(place, copy)
            account = open_account(ready, copy)
            runs, left = len(account.runs), rounded_down(account.left)
            account.reserve(ready.forecast(), _what(ready))
        except TaciturnError as error:
            return [(False, f"account: {str(error).replace(str(copy), str(place))}")]
    new = "" if place.exists() else f"; it is begun anew, at {place}"
    return [(True, f"account: {runs} runs of this table so far leave epsilon {left}, enough for this{new}")]


def _what(ready: Ready) -> str:
    job = ready.site.job
    return f"site {ready.site.name} in job {job.name}, {job.hash.hex()[:12]}"
