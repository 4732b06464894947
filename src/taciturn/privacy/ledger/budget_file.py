"""The budget file: an SQLite file whose rows form a hash chain. Each change is a transaction, synced to disk.

Row 0 contains the terms of the budget. Each run adds one row when it is reserved, before any noise is drawn,
and another row when it has ended. A reservation is never undone: if a process dies during a run, the whole
run stays charged.
A connection is open for one transaction only, so that threads and forked processes may share a budget.
"""

from __future__ import annotations

import math
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import LedgerError, ParameterError
from ...core.files import PART
from ..accounting.budgets import BUDGET_ORDERS, RunCost
from . import chain
from .chain import Head

FORMAT = "taciturn-budget/1"
_PATIENCE = 60.0  # seconds to wait while another process has the file locked


@dataclass(frozen=True)
class BudgetTerms:
    """The terms of a budget. `accountant` may be None until the first run chooses an accountant."""

    epsilon: float
    delta: float
    unit: str
    accountant: str | None
    large_delta: bool = False


@dataclass(frozen=True)
class BudgetRun:
    """One run in a budget.

    run : the id of the run in the file, which reveals nothing about the run.
    what : what was run, e.g. "PrivateLogisticRegression".
    time : when the run was reserved, UTC.
    against : the condition under which the run's epsilon holds, in words: how many sites may collude.
    cost : the cost of the run by every accountant; `cost.alone` is the epsilon of this run by itself, at the
        budget's delta.
    marks : the warnings of the run's certificate, such as assumptions that were not checked.
    finished : False while the run is in progress, and forever if it was interrupted. Every run is charged,
        finished or not.
    """

    run: str
    what: str
    time: str
    unit: str
    against: str
    cost: RunCost
    marks: tuple[str, ...] = ()
    finished: bool = False


class Contents(NamedTuple):
    """The content of a budget file."""

    terms: BudgetTerms
    runs: tuple[BudgetRun, ...]
    head: Head

    @property
    def costs(self) -> list[RunCost]:
        return [run.cost for run in self.runs]


@contextmanager
def open_rows(path: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """One exclusive transaction on the file. At its end all changes are on disk or, after an error, none."""
    if not create and not path.exists():
        raise LedgerError(f"there is no budget at {path}; create one with `epsilon` and `delta`.")
    try:
        with (
            closing(chain.connect(path, "rwc" if create else "rw", patience=_PATIENCE)) as db,
            chain.transaction(db),
        ):
            yield db
    except LedgerError as error:
        if getattr(error.__cause__, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise LedgerError(f"{path} is not a budget file. Use a file that `Budget` created.") from error
        raise


def make(path: Path, terms: BudgetTerms) -> None:
    """Create a file with an empty budget atomically. If several processes do this, the first file is kept."""
    make_rows(path, lambda db: begin(db, terms))


def make_rows(path: Path, first: Callable[[sqlite3.Connection], None]) -> None:
    """Create a file with its first rows atomically: a process that dies during the creation leaves no file.

    On a file system without hard links, the creation is not atomic: the file is created and then filled.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
    try:
        with open_rows(part, create=True) as db:
            first(db)
        with suppress(FileExistsError):
            os.link(part, path)
    except OSError:  # a file system without hard links
        with open_rows(path, create=True) as db:
            if not chain.exists(db):
                first(db)
    finally:
        part.unlink(missing_ok=True)


def begin(db: sqlite3.Connection, terms: BudgetTerms) -> None:
    """Create the tables of a budget without runs, and write its terms as row 0."""
    chain.create(db)
    chain.append(db, chain.EMPTY, {"format": FORMAT, **asdict(terms)})


def read(db: sqlite3.Connection, path: Path, at_least: Head | None = None) -> Contents:
    """The content of the file, after its hash chain was verified."""
    bodies, head = chain.verify_rows(db, at_least)
    if bodies[0].get("format") != FORMAT:
        raise LedgerError(f"{path} is the ledger of one run, not a budget over several runs; use a new file.")
    try:
        terms = BudgetTerms(**{key: bodies[0][key] for key in BudgetTerms.__dataclass_fields__})
        ended = {body["ended"] for body in bodies[1:] if "ended" in body}
        runs = [_run(body, ended) for body in bodies[1:] if "ended" not in body]
        chosen = next((body["accountant"] for body in bodies[1:] if "accountant" in body), terms.accountant)
    except chain.UNREADABLE as error:
        raise LedgerError(f"{path} was written in a format that this version does not know.") from error
    terms = replace(terms, accountant=chosen)
    return Contents(terms, tuple(runs), head)


def add_run(db: sqlite3.Connection, contents: Contents, run: BudgetRun, accountant: str) -> Head:
    """Reserve a run: append its row."""
    body = {**asdict(run), "cost": _plain(run.cost), "accountant": accountant}
    return chain.append(db, contents.head, {key: value for key, value in body.items() if key != "finished"})


def _run(body: dict[str, Any], ended: set[str]) -> BudgetRun:
    facts = {key: body[key] for key in ("run", "what", "time", "unit", "against")}
    marks, finished = tuple(body.get("marks", ())), body["run"] in ended
    return BudgetRun(**facts, cost=_cost(body["cost"]), marks=marks, finished=finished)


def _plain(cost: RunCost) -> dict[str, Any]:
    """The cost as JSON values: None for infinity, which JSON does not have."""
    plain = asdict(cost)
    plain["renyi"] = [_number(value) for value in cost.renyi]
    return {key: value if key == "renyi" else _number(value) for key, value in plain.items()}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _cost(plain: dict[str, Any]) -> RunCost:
    found = {key: math.inf if value is None else value for key, value in plain.items() if key != "renyi"}
    renyi = tuple(math.inf if value is None else float(value) for value in plain["renyi"])
    if len(renyi) != len(BUDGET_ORDERS) or not all(value >= 0 for value in (*found.values(), *renyi)):
        raise ParameterError("the cost of a run must be at least 0, by every accountant and at every order.")
    return RunCost(renyi=renyi, **found)
