"""Which budget a run is charged to: that of the block it is in, or that which an estimator brought along."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ...errors import LedgerError
from .budget import DELTA, Budget, active_budget
from .pricing import Planned

_PROCESS = secrets.token_hex(8)  # differs in every process that was not forked off this one


@dataclass(frozen=True)
class Inherited:
    """Which budget was in use where an estimator was pickled, and in which process."""

    path: str
    process: str


def note_origin() -> Inherited | None:
    """What an estimator takes along to another process."""
    budget = active_budget()
    return None if budget is None else Inherited(str(budget.path), _PROCESS)


@contextmanager
def join_budget(origin: Inherited | None) -> Iterator[None]:
    """Inside the budget that an estimator brought along from another process, if it did."""
    if origin is None or origin.process == _PROCESS or active_budget() is not None:
        yield
        return
    with Budget(origin.path):
        yield


@contextmanager
def charge_run(what: str, plan: Callable[[float], Planned]) -> Iterator[None]:
    """Around a real run: reserved in the budget in use, if one is; `plan(delta)` is its certificate."""
    budget = active_budget()
    if budget is None:
        yield
        return
    run = budget.reserve(plan(budget.delta or DELTA), what)
    yield
    with suppress(LedgerError):  # that it ended is a note, and no part of the account
        budget.finish(run)
