"""Which budget a release is charged to: that of the block from which it was called, in whatever worker."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from ...core.errors import LedgerError
from . import budget as blocks
from .budget import DELTA, Budget
from .open_budgets import UNTOUCHED, block_at_start, block_of_ancestors
from .pricing import Planned

ORIGIN = "_budget_origin"
Origin = tuple[str, str]
"""In which block an estimator was pickled: the budget's file and the block's name."""
OUTSIDE: Origin = ("", "")
_settled: ContextVar[list[Budget | None] | None] = ContextVar("settled", default=None)


def note_origin(model: object) -> Origin:
    """The budget that an estimator carries to another process."""
    block = blocks.open_here[-1].block if blocks.open_here else None
    if block is None:
        with suppress(LedgerError):  # it is refused where it is to release something
            block = block_of_ancestors()
    return (origin_of(model) or OUTSIDE) if block is None else (block.path, block.name)


def origin_of(model: object) -> Origin | None:
    """The budget that a model, or the last step of a pipeline, carried from another process."""
    steps = getattr(model, "steps", None)
    found: Origin | None = getattr(steps[-1][1] if steps else model, ORIGIN, None)
    return OUTSIDE if found is not None and found[1] in blocks.opened_here else found


@contextmanager
def join_budget(origin: Origin | None = None) -> Iterator[Budget | None]:
    """Settle which budget a call is charged to when it begins; other threads cannot change it later."""
    if _is_settled():
        yield active_budget()
        return
    settled = [_find(origin)]
    token = _settled.set(settled)
    try:
        yield active_budget()
    finally:
        _settled.reset(token)
        settled.clear()  # a copy of this context may live on


def active_budget() -> Budget | None:
    """The budget that a release made here and now is charged to."""
    return (_settled.get() or [None])[0] if _is_settled() else _find(None)


def _is_settled() -> bool:
    """Whether this code is part of a call that has begun, and has entered no other block since."""
    settled = _settled.get()
    return bool(settled) and blocks.entered.get() in (None, *(settled or ()))


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


def _find(origin: Origin | None) -> Budget | None:
    """This process's block; else that of the call, of an ancestor, or the one this process was started in."""
    own, entered = blocks.open_here[-1] if blocks.open_here else None, blocks.entered.get()
    if entered is not None and entered != own:
        raise LedgerError(
            f"this task was started inside the budget {entered.path}, which is closed; {UNTOUCHED}. "
            "Await the task before the `with` block ends."
        )
    if own is not None:
        return own
    if threading.current_thread() in blocks.outlived:
        raise LedgerError(
            f"this thread was started inside a budget that is closed; {UNTOUCHED}. Wait for threads before "
            "the `with` block ends, and start new ones after it."
        )
    above = block_of_ancestors()
    brought = "" if origin is None else origin[0]
    if above is not None and brought not in ("", above.path):
        raise LedgerError(
            f"the estimator comes from inside the budget {brought}, but {above.path} is open now; "
            f"{UNTOUCHED}. Wait for the workers before the `with` block ends."
        )
    name, still = block_at_start()
    found = brought or (above.path if above else still.path if still else None)
    if found is None and name and origin != OUTSIDE:
        raise LedgerError(
            "this worker process was started inside a budget that is closed, and does not know which budget "
            f"to charge; {UNTOUCHED}. Start new workers, and wait for them before the `with` block ends."
        )
    return None if found is None else Budget(found)


os.register_at_fork(after_in_child=lambda: _settled.set(None))
