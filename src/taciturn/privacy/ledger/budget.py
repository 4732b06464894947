"""Budget: one limit (epsilon, delta) for all runs on the same records, in one or several processes."""

from __future__ import annotations

import math
import os
import secrets
import threading
from contextvars import ContextVar
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from types import TracebackType

from ...core import checks
from ...core.errors import BudgetExceeded, LedgerError
from ...core.formatting import format_at_least, format_cost, format_given
from ...core.notebook import facts_table
from ..accounting.budgets import Limit, composed_epsilon
from ..facts import UNITS
from . import budget_file as file
from .budget_file import BudgetRun, BudgetTerms, Contents
from .chain import Head, append, exists
from .late_calls import note_workers, watch_starts
from .open_budgets import UNTOUCHED, BudgetBlock, announce, block_at_start, blocks_of_ancestors, withdraw
from .pricing import Planned, check_proof, run_cost

DELTA = 1e-5
_lock = threading.Lock()
open_here: list[Budget] = []
"""The budget whose `with` block is open in this process, in any thread. The list has at most one entry."""
opened_here: set[str] = set()
"""The names of all blocks that this process ever opened."""
entered: ContextVar[Budget | None] = ContextVar("entered", default=None)
"""The budget that this task, or the code that started this task, has entered with `with`."""


class Budget:
    """One limit (epsilon, delta) for all differentially private runs on the same records.

    Inside a `with` block every fit, `train`, `train_job`, `run_program` and `private_...` function of this
    process and of its workers is charged to the file. The whole run is charged before any noise is drawn. A
    run that would exceed the budget raises `BudgetExceeded`, and nothing is drawn or charged. The run of a
    process that dies stays charged. Several processes may use the file at the same time. The budget adds up
    the mu^2 of the runs (Gaussian differential privacy) or their Renyi costs, which is tighter than adding up
    epsilons. Only a budget with delta = 0 adds up epsilons.

    Parameters
    ----------
    path : the budget file; use one file for each set of records. The file is created if it does not exist and
        `epsilon` is given; an empty file is refused.
    epsilon, delta : the limit for all runs together. An existing file contains its own limit, so both may be
        left out. delta = 0 is a pure budget, for runs with norm noise.
    unit : "record" or "person". With "person", the budget refuses runs that only protect single records.
    accountant : "gaussian" (sum of mu^2), "renyi" (sum of Renyi costs at one order, which epsilon and delta
        determine; for budgets in which some runs have norm noise) or "pure" (for delta = 0). With None, the
        first run decides whether "gaussian" or "renyi" is used for all runs: the accountant by which this
        run uses the smaller part of the budget.
    large_delta : True allows a delta above 1 / (number of records or persons of a run).
    at_least : a value of `head` that was noted earlier. Raises `LedgerError` if it is not in the file,
        for example because the file was restored from a backup.

    Examples
    --------
    >>> import tempfile, numpy as np, taciturn as tt
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (2000, 3))
    >>> with tempfile.TemporaryDirectory() as folder, tt.Budget(f"{folder}/all.sqlite", epsilon=1) as budget:
    ...     clf = tt.PrivateLogisticRegression(epsilon=0.5, colluding=1, sites=3).fit(X, X[:, 0] > 0)
    ...     bool(budget.spent <= 0.5), bool(0.8 < budget.left < 1)
    (True, True)
    """

    block: BudgetBlock
    _head: Head

    def __init__(
        self,
        path: str | PathLike[str],
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        unit: str | None = None,
        accountant: str | None = None,
        large_delta: bool = False,
        at_least: Head | None = None,
    ) -> None:
        watch_starts()
        self.path = Path(path).absolute()
        terms = _terms(epsilon, delta, unit, accountant, large_delta)
        if terms is not None and not self.path.exists():
            file.make(self.path, terms)
        with file.open_rows(self.path) as db:
            if not exists(db) and not self.path.stat().st_size:
                raise LedgerError(
                    f"{self.path} is empty: its charges are lost. Restore the right file; if the file never "
                    "had charges, delete it."
                )
            if terms is not None and not exists(db):
                file.begin(db, terms)
            if not exists(db):
                raise LedgerError(f"{self.path} is not a budget file; create one with `epsilon` and `delta`.")
            found = file.read(db, self.path, at_least)
        self._terms, self._head = found.terms, found.head
        given = {"epsilon": epsilon, "delta": delta, "unit": unit, "accountant": accountant}
        for name, value in given.items():
            if value is not None and value != getattr(found.terms, name):
                raise LedgerError(
                    f"{self.path} was created with {name} = {getattr(found.terms, name)}; got {value}. "
                    "The terms of a budget never change: give the value that the file was created with, or "
                    "create a new file for other records."
                )

    # -- charging -------------------------------------------------------------------------------

    def reserve(self, planned: Planned, what: str, *, run: str | None = None) -> str:
        """Charge a whole run before any of its noise is drawn. Returns the run id for `finish`.

        `planned` is the certificate of the whole run at the budget's delta. `run`, if given, is the run's id:
        a run that is reserved several times under the same id is charged only once.
        """
        asked = self._weigh(planned, what, run or secrets.token_hex(8))
        with file.open_rows(self.path) as db:
            found = file.read(db, self.path, self._head)
            head = found.head
            if run is None or all(other.run != run for other in found.runs):
                head = file.add_run(db, found, asked, _admit(found, asked).accountant)
        self._head = head
        return asked.run

    def check(self, planned: Planned, what: str) -> float:
        """The value that `left` would have after a run. Raises as `reserve` does, but charges nothing."""
        found, asked = self._read(), self._weigh(planned, what, "")
        return _admit(found, asked).left([*found.costs, asked.cost])

    def _weigh(self, planned: Planned, what: str, number: str) -> BudgetRun:
        """The entry of the run in the budget file."""
        check_proof(planned.run)
        if self.unit == "person" and planned.run.unit != "person":
            raise BudgetExceeded(
                "the budget protects persons, but this run protects single records only: give `person`."
            )
        units = planned.run.persons or sum(site.samples for site in planned.sites)
        checks.usual_delta(self.delta, units, insisted=self._terms.large_delta)
        return BudgetRun(
            run=number,
            what=str(what),
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            unit=planned.run.unit,
            against=_against(planned),
            cost=run_cost(planned, pure=self.delta == 0),
            marks=planned.run.marks,
        )

    def finish(self, run: str) -> None:
        """Note that a run has ended. Its cost does not change."""
        with file.open_rows(self.path) as db:
            head = append(db, file.read(db, self.path, self._head).head, {"ended": run})
        self._head = head

    # -- reading --------------------------------------------------------------------------------

    @property
    def epsilon(self) -> float:
        return self._terms.epsilon

    @property
    def delta(self) -> float:
        return self._terms.delta

    @property
    def unit(self) -> str:
        return self._terms.unit

    def is_at(self, path: str | PathLike[str]) -> bool:
        """Whether a path leads to this budget's file."""
        return os.path.realpath(path) == os.path.realpath(self.path)

    @property
    def accountant(self) -> str | None:
        """The accountant of the budget; None before the first run if no accountant was given."""
        return self._read().terms.accountant

    @property
    def runs(self) -> tuple[BudgetRun, ...]:
        """All runs that were ever reserved, in order."""
        return self._read().runs

    @property
    def head(self) -> Head:
        """The number of rows in the file, and the SHA-256 of the last row. Store both outside the file."""
        return self._read().head

    @property
    def spent(self) -> float:
        """The epsilon of all runs together at the budget's delta. It holds if all runs were fixed in advance.

        If the choice of a run depended on the results of earlier runs, only `epsilon`, the whole budget, is
        guaranteed.
        """
        return composed_epsilon(self._read().costs, self.delta)

    @property
    def left(self) -> float:
        """The largest epsilon that one further run may have: `share(1)`."""
        return self.share(1)

    def share(self, runs: int) -> float:
        """The largest epsilon that each of `runs` further runs, such as the fits of a grid search, may have.

        The epsilon is at the budget's delta. The runs are assumed to have Gaussian or masked noise, or norm
        noise if delta = 0.
        """
        found = self._read()
        return _any_limit(found).left(found.costs, runs)

    def _read(self) -> Contents:
        """The content of the file. Raises if a row that this object has read before is missing."""
        with file.open_rows(self.path) as db:
            found = file.read(db, self.path, self._head)
        self._head = found.head
        return found

    def __repr__(self) -> str:
        found = self._read()
        spent, left = composed_epsilon(found.costs, self.delta), _any_limit(found).left(found.costs)
        about = f"spent={format_cost(spent)}, left={format_at_least(left)}, runs={len(found.runs)}"
        return f"Budget(epsilon={format_given(self.epsilon)}, delta={format_given(self.delta)}, {about})"

    def _repr_html_(self) -> str:
        found = self._read()
        limit = f"epsilon = {format_given(self.epsilon)} at delta = {format_given(self.delta)}"
        facts = {
            "budget": f"{limit}, any one {self.unit}",
            "spent": f"{format_cost(composed_epsilon(found.costs, self.delta))} by {len(found.runs)} run(s)",
            "left": f"{format_at_least(_any_limit(found).left(found.costs))} for one more run",
        }
        facts |= {f"{k}. {run.what}": describe_run(run) for k, run in enumerate(found.runs, 1)}
        return facts_table("Budget", facts)

    # -- the block ------------------------------------------------------------------------------

    def __enter__(self) -> Budget:
        with _lock:
            if open_here:
                raise LedgerError(
                    f"the budget {open_here[0].path} is in use in this process; a run has only one budget, "
                    f"so {self.path} cannot be opened. End the first `with` block before the second begins."
                )
            above = blocks_of_ancestors(sure=False)[0] or block_at_start()[1]
            if above is not None and not self.is_at(above.path):
                raise LedgerError(
                    f"the budget {above.path} is in use by the process that started this one; a run has "
                    f"only one budget, so {self.path} cannot be opened. Open it outside that block."
                )
            self.block = announce(self.path)
            opened_here.add(self.block.name)
            open_here.append(self)
        entered.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entered.set(None)
        with _lock:
            if self not in open_here:  # this is a forked child; its parent is in the block
                return
            note_workers(self.block.name)  # before workers can release something outside the block
            open_here.remove(self)
            note_workers(self.block.name)  # workers that were started in the meantime
            withdraw(self.block)


def _leave_after_fork() -> None:
    """Leave the parent's block in a forked child.

    The child gets a new lock, because a thread that exists only in the parent may hold the old one.
    """
    global _lock
    _lock = threading.Lock()
    open_here.clear()
    opened_here.clear()
    entered.set(None)


os.register_at_fork(after_in_child=_leave_after_fork)


def describe_run(run: BudgetRun) -> str:
    """One line: the run's own cost, the assumed colluding sites, the marks, and whether the run has ended."""
    end = "" if run.finished else "; not finished, but charged"
    marks = "".join(f"; {mark}" for mark in run.marks)
    return f"epsilon = {format_cost(run.cost.alone)} by itself, {run.against}{marks}{end}"


def _terms(
    epsilon: float | None, delta: float | None, unit: str | None, accountant: str | None, large: bool
) -> BudgetTerms | None:
    """The terms of a new budget; None if `epsilon` is not given, because then the file must exist already."""
    if epsilon is None:
        return None
    number = DELTA if delta is None else checks.nonnegative("delta", delta)
    chosen = "pure" if number == 0 else accountant
    terms = BudgetTerms(
        epsilon=checks.positive("epsilon", epsilon),
        delta=number if number == 0 else checks.probability("delta", number),
        unit=checks.choice("unit", unit or "record", UNITS),
        accountant=chosen,
        large_delta=bool(large),
    )
    Limit(accountant or chosen or "gaussian", terms.epsilon, terms.delta)
    return terms


def _any_limit(found: Contents) -> Limit:
    return Limit(found.terms.accountant or "gaussian", found.terms.epsilon, found.terms.delta)


def _admit(found: Contents, run: BudgetRun) -> Limit:
    """The limit of the budget, which admits the run. Raises `BudgetExceeded` if it does not admit the run."""
    limit = _any_limit(found)
    if found.terms.accountant is None:  # the first run decides
        both = [Limit(name, found.terms.epsilon, found.terms.delta) for name in ("gaussian", "renyi")]
        limit = min(both, key=lambda limit: limit.price(run.cost) / limit.most)
    if not limit.admits([*found.costs, run.cost]):
        raise BudgetExceeded(_refusal(limit, found, run))
    return limit


def _against(planned: Planned) -> str:
    run = planned.run
    if not run.masked:
        return "whichever sites collude"
    number = run.sites - 1 if run.colluding is None else run.colluding
    return f"if at most {number} of {run.sites - 1} other sites collude"


def _refusal(limit: Limit, found: Contents, run: BudgetRun) -> str:
    left = limit.left(found.costs)
    told = f"a budget of epsilon = {format_given(limit.epsilon)} at delta = {format_given(limit.delta)}"
    mended = run.cost.alone <= left and limit.accountant == "gaussian"
    if mended or not math.isfinite(limit.price(run.cost)):
        hint = {"gaussian": " Use Gaussian or masked noise, or create the budget with accountant='renyi'."}
        return (
            f"{run.what} cannot be charged to {told}: the cost of this run by the {limit.accountant} "
            f"accountant is too large or unknown; {UNTOUCHED}.{hint.get(limit.accountant, '')}"
        )
    return (
        f"{run.what} costs epsilon = {format_cost(run.cost.alone)} and would exceed {told}. After the "
        f"{len(found.runs)} run(s) so far, one run may cost at most {format_at_least(left)}; {UNTOUCHED}."
    )
