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
from pathlib import Path
from typing import Any

from ...errors import TaciturnError, WrongFiles
from ...privacy.accounting.shown import rounded_down
from ...privacy.ledger.budget import Budget
from ..files.database import wrong_ledger_as
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
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with wrong_ledger_as(place):
        return Budget(place, terms.epsilon, terms.delta, large_delta=terms.large_delta)


def pay(ready: Ready, store: SiteStore[Any]) -> None:
    """Charge the whole run to the account, once; `BudgetExceeded` where it would pass the budget.

    An account that no longer holds a run which was charged to it is not the one it was: `WrongFiles`.
    """
    number, place = store.paid(), account_place(ready)
    if number is not None:
        _check_kept(ready, place, number)
    elif place is not None:
        if not place.exists():
            log.warning("a new account of this table is begun: %s; was there none before this job?", place)
        store.note_paid(open_account(ready, place).reserve(ready.forecast(), _what(ready)))


def _check_kept(ready: Ready, place: Path | None, number: str) -> None:
    there = place is not None and place.exists()
    if place is None or not there or all(run.run != number for run in open_account(ready, place).runs):
        raise WrongFiles(
            f"{place or '`budget.ledger`'}: does not hold this run, which was charged to it: it was deleted, "
            "put back from a backup, or is another file. Nothing is released; put the right one back."
        )


def settle(ready: Ready, store: SiteStore[Any]) -> None:
    """Note in the account that the run has come to its end; what it cost stays."""
    place, number = account_place(ready), store.paid()
    if place is None or not place.exists():
        return
    account = open_account(ready, place)
    if any(run.run == number and not run.finished for run in account.runs):
        account.finish(str(number))


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
            if place.exists():
                shutil.copyfile(place, copy)
            account = open_account(ready, copy)
            runs, left = len(account.runs), rounded_down(account.left)
            account.reserve(ready.forecast(), _what(ready))
        except TaciturnError as error:
            return [(False, f"account: {error}")]
    new = "" if place.exists() else f"; it is begun anew, at {place}"
    return [(True, f"account: {runs} runs of this table so far leave epsilon {left}, enough for this{new}")]


def _what(ready: Ready) -> str:
    job = ready.site.job
    return f"site {ready.site.name} in job {job.name}, {job.hash.hex()[:12]}"
