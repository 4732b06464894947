"""Budget: one (epsilon, delta) for all runs on the same records, whichever process they are in."""

from __future__ import annotations

import math
import secrets
import threading
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from types import TracebackType

from ... import checks
from ...errors import BudgetExceeded, LedgerError, ParameterError
from ...notebook import facts_table
from ..accounting.budgets import Limit, RunCost, composed_epsilon
from ..facts import UNITS
from . import budget_file as file
from .budget_file import BudgetRun, BudgetTerms, Contents
from .chain import Head, exists
from .pricing import Planned, run_cost

DELTA = 1e-5
_lock = threading.Lock()
_open: list[Budget] = []


class Budget:
    """One (epsilon, delta) for everything that is computed with noise from the same records.

    Inside a `with` block every fit, `train`, `train_job`, `private_score` and `private_description` of this
    process is charged to the file, whole and before anything is drawn. One that would pass the budget raises
    `BudgetExceeded`, and nothing happens. A process that dies leaves its run charged. Several processes may
    use the file at once. What runs cost together is composed exactly: squares of mu, or Renyi costs, add up.

    Parameters
    ----------
    path : the file; one for each set of records. It is made where it is not there
        yet; one that is there and empty is refused.
    epsilon, delta : for all runs together. An existing file has its own, and they may be left out.
        delta = 0 is a pure budget, for runs with norm noise.
    unit : "record", or "person": then runs that protect single records only are refused.
    accountant : "gaussian" (sum of mu^2), "renyi" (at one order, set by epsilon and delta: for runs with norm
        noise beside others) or "pure". None: the one by which the first run takes less of the budget.
    large_delta : insists on a delta above one over the number of records of a run.
    at_least : a `head` noted earlier, which the file must still contain: it was not put back from a backup.

    Examples
    --------
    >>> import tempfile, numpy as np, taciturn as tt
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (2000, 3))
    >>> with tempfile.TemporaryDirectory() as folder, tt.Budget(f"{folder}/all.sqlite", epsilon=1) as budget:
    ...     clf = tt.PrivateLogisticRegression(epsilon=0.5, colluding=1, sites=3).fit(X, X[:, 0] > 0)
    ...     bool(budget.spent <= 0.5), bool(0.8 < budget.left < 1)
    (True, True)
    """

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
        self.path = Path(path).absolute()
        terms = _terms(epsilon, delta, unit, accountant, large_delta)
        if terms is not None and not self.path.exists():
            file.make(self.path, terms)
        with file.open_rows(self.path) as db:
            if not exists(db) and not self.path.stat().st_size:
                raise LedgerError(
                    f"{self.path} is empty: whatever was charged to it is gone. Put the right file back; if "
                    "nothing ever was, delete it."
                )
            if terms is not None and not exists(db):
                file.begin(db, terms)
            if not exists(db):
                raise LedgerError(f"{self.path} holds no budget; begin one with `epsilon` and `delta`.")
            found = file.read(db, self.path, at_least)
        self._terms = found.terms
        given = {"epsilon": epsilon, "delta": delta, "unit": unit, "accountant": accountant}
        for name, value in given.items():
            if value is not None and value != getattr(found.terms, name):
                raise LedgerError(
                    f"{self.path} was begun with {name} = {getattr(found.terms, name)}; got {value}. "
                    "A budget never changes: leave it out, or begin a new file for other records."
                )

    # -- charging -------------------------------------------------------------------------------

    def reserve(self, planned: Planned, what: str) -> str:
        """Charge a whole run before anything of it is drawn; its number, for `finish`.

        `planned` is the run's certificate at the budget's delta after its last round.
        """
        if planned.run.simulated:
            raise ParameterError(
                "`random_state` must be None inside a Budget: noise that can be replayed protects nobody, "
                "and a budget cannot pay for that. Rehearse on other rows, outside of it."
            )
        if self.unit == "person" and planned.run.unit != "person":
            raise BudgetExceeded(
                "the budget is for persons, and this run covers single records: give `person`."
            )
        units = planned.run.persons or sum(site.samples for site in planned.sites)
        checks.usual_delta(self.delta, units, insisted=self._terms.large_delta)
        cost = run_cost(planned, pure=self.delta == 0)
        run = BudgetRun(
            run=secrets.token_hex(8),
            what=str(what),
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            unit=planned.run.unit,
            against=_against(planned),
            cost=cost,
        )
        with file.open_rows(self.path) as db:
            found = file.read(db, self.path)
            limit = _limit(found, cost)
            if not limit.admits([*found.costs, cost]):
                raise BudgetExceeded(_refusal(limit, found, run))
            file.add_run(db, found, run, limit.accountant)
        return run.run

    def finish(self, run: str) -> None:
        """Note that a run has come to its end. Its cost stays what it was."""
        with file.open_rows(self.path) as db:
            file.end_run(db, file.read(db, self.path), run)

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

    @property
    def accountant(self) -> str | None:
        """What is added up; None before the first run."""
        return self._read().terms.accountant

    @property
    def runs(self) -> tuple[BudgetRun, ...]:
        """All runs that were ever reserved, in order."""
        return self._read().runs

    @property
    def head(self) -> Head:
        """How many rows the file has, and the SHA-256 of the last; note it elsewhere."""
        return self._read().head

    @property
    def spent(self) -> float:
        """epsilon of all runs together at the budget's delta, had they been fixed beforehand.

        What is promised whatever the runs reacted to is `epsilon`, the budget itself.
        """
        return composed_epsilon(self._read().costs, self.delta)

    @property
    def left(self) -> float:
        """The largest epsilon, at the budget's delta, with which one more Gaussian run is admitted."""
        return self.share(1)

    def share(self, runs: int) -> float:
        """The same for each of so many more runs: folds of a cross-validation times points of a grid, say."""
        found = self._read()
        return _any_limit(found).left(found.costs, runs)

    def _read(self) -> Contents:
        with file.open_rows(self.path) as db:
            return file.read(db, self.path)

    def __repr__(self) -> str:
        found = self._read()
        spent, left = composed_epsilon(found.costs, self.delta), _any_limit(found).left(found.costs)
        about = f"spent={round_up(spent)}, left={round_down(left)}, runs={len(found.runs)}"
        return f"Budget(epsilon={self.epsilon:g}, delta={self.delta:g}, {about})"

    def _repr_html_(self) -> str:
        found = self._read()
        facts = {
            "budget": f"epsilon = {self.epsilon:g} at delta = {self.delta:g}, any one {self.unit}",
            "spent": f"{round_up(composed_epsilon(found.costs, self.delta))} by {len(found.runs)} run(s)",
            "left": f"{round_down(_any_limit(found).left(found.costs))} for one more run",
        }
        facts |= {f"{k}. {run.what}": describe_run(run) for k, run in enumerate(found.runs, 1)}
        return facts_table("Budget", facts)

    # -- the block ------------------------------------------------------------------------------

    def __enter__(self) -> Budget:
        with _lock:
            if _open:
                raise LedgerError(
                    f"the budget {_open[0].path} is in use in this process; a run has one budget."
                )
            _open.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            _open.remove(self)


def active_budget() -> Budget | None:
    """The budget whose `with` block this process is in, in whatever thread."""
    return _open[-1] if _open else None


def describe_run(run: BudgetRun) -> str:
    """One line: its own cost, whom that holds against, and whether it came to its end."""
    end = "" if run.finished else "; not finished, charged all the same"
    return f"epsilon = {round_up(run.cost.alone)} by itself, {run.against}{end}"


def round_up(epsilon: float) -> str:
    """Four decimals, never below the truth."""
    return f"{math.ceil(epsilon * 1e4 * (1 - 1e-15)) / 1e4:g}" if math.isfinite(epsilon) else "infinite"


def round_down(epsilon: float) -> str:
    """Four decimals, never above the truth."""
    return f"{math.floor(epsilon * 1e4) / 1e4:g}"


def _terms(
    epsilon: float | None, delta: float | None, unit: str | None, accountant: str | None, large: bool
) -> BudgetTerms | None:
    """The terms of a new budget; None where there must be one already."""
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


def _limit(found: Contents, cost: RunCost) -> Limit:
    """What the next run is measured by; the first run decides where the terms do not."""
    if found.terms.accountant is not None:
        return _any_limit(found)
    both = [Limit(name, found.terms.epsilon, found.terms.delta) for name in ("gaussian", "renyi")]
    return min(both, key=lambda limit: limit.price(cost) / limit.most)


def _against(planned: Planned) -> str:
    run = planned.run
    if not run.masked:
        return "whoever works together"
    number = run.sites - 1 if run.colluding is None else run.colluding
    return f"against {number} of {run.sites - 1} other sites working together"


def _refusal(limit: Limit, found: Contents, run: BudgetRun) -> str:
    left = limit.left(found.costs)
    told = f"a budget of epsilon = {limit.epsilon:g} at delta = {limit.delta:g}"
    mended = run.cost.alone <= left and limit.accountant == "gaussian"
    if mended or not math.isfinite(limit.price(run.cost)):
        hint = {"gaussian": "; use Gaussian or masked noise, or begin budgets with accountant='renyi'"}
        return (
            f"{run.what} costs too much, or is of unknown cost, by the {limit.accountant} sums of {told}; "
            f"nothing was drawn{hint.get(limit.accountant, '')}."
        )
    return (
        f"{run.what} costs epsilon = {round_up(run.cost.alone)} and would pass {told}, of which "
        f"{len(found.runs)} run(s) left {round_down(left)} for one more; nothing was drawn."
    )
