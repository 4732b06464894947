"""The account of a table: one budget for all jobs that ever used it, in a file of its own.

A run is charged to it whole, when everybody is there and before its first round, and stays charged however it
ends. Which number it has there is kept in the site's state, so that a restart pays once; a state that was
lost has lost that too, and the run that begins anew is charged anew. Estimators, training jobs and
evaluations may use the same file: it is a `taciturn.Budget`.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from ...errors import TaciturnError
from ...privacy.accounting.shown import rounded_down
from ...privacy.ledger.budget import Budget
from .prepare import Ready
from .store import SiteStore


def open_account(ready: Ready, path: Path | None = None) -> Budget | None:
    """The budget of this site's table, made where there is none yet; None where none is kept.

    A job with a seed is a rehearsal, which protects nobody and which no budget can pay for.
    """
    terms = ready.site.file.budget
    if terms.ledger is None or ready.site.job.simulated:
        return None
    place = ready.site.path(terms.ledger) if path is None else path
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Budget(place, terms.epsilon, terms.delta, large_delta=terms.large_delta)


def pay(ready: Ready, store: SiteStore[Any]) -> None:
    """Charge the whole run to the account, once; `BudgetExceeded` where it would pass the budget."""
    account = open_account(ready)
    if account is not None and store.paid() is None:
        store.note_paid(account.reserve(ready.forecast(), _what(ready)))


def settle(ready: Ready, store: SiteStore[Any]) -> None:
    """Note in the account that the run has come to its end; what it cost stays."""
    account, number = open_account(ready), store.paid()
    if account is not None and any(run.run == number and not run.finished for run in account.runs):
        account.finish(str(number))


def foresee(ready: Ready) -> list[tuple[bool, str]]:
    """Whether the account will pay for the run, tried on a copy of it, and in which words."""
    ledger = ready.site.file.budget.ledger
    if ready.site.job.simulated:
        return []
    if ledger is None:
        return [(True, "the budget is for this job alone; with a `ledger`, one for all jobs of this table")]
    place = ready.site.path(ledger)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "account.sqlite"
        try:
            if place.exists():
                shutil.copyfile(place, copy)
            account = open_account(ready, copy)
            if account is None:
                return []
            runs, left = len(account.runs), rounded_down(account.left)
            account.reserve(ready.forecast(), _what(ready))
        except TaciturnError as error:
            return [(False, f"account: {error}")]
    return [(True, f"account: {runs} runs of this table so far leave epsilon {left}, enough for this")]


def _what(ready: Ready) -> str:
    job = ready.site.job
    return f"site {ready.site.name} in job {job.name}, {job.hash.hex()[:12]}"
