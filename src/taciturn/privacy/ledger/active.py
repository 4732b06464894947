"""Find the budget to which a release is charged: the budget whose `with` block the call comes from.

The call may run in a thread, task or process other than the one that runs the block. A call is late if it
runs after the end of the block that it comes from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from ...core.errors import LedgerError
from . import budget as blocks
from .budget import DELTA, Budget
from .late_calls import block_of_late_call
from .open_budgets import UNTOUCHED, block_at_start, blocks_of_ancestors
from .pricing import Planned

ORIGIN = "_budget_origin"
Origin = tuple[str, str]
"""Where an estimator was pickled: the budget's file and the name of the budget's `with` block. Both are empty
outside of all blocks. A name without a file means that the call may be late: the block of this name had ended
when the estimator was pickled, and the call may have begun inside this block."""
OUTSIDE: Origin = ("", "")
_settled: ContextVar[list[Budget | None] | None] = ContextVar("settled", default=None)
"""The budget of the running call, as the only entry of a list. After the call, the list is empty."""


def note_origin(model: object) -> Origin:
    """The origin that an estimator is pickled with, so that another process charges the same budget."""
    block = blocks.open_here[-1].block if blocks.open_here else None
    if block is None:
        with suppress(LedgerError):  # raised later, when the process that loads the estimator makes a release
            block = blocks_of_ancestors()[0]
    if block is not None:
        return block.path, block.name
    return origin_of(model) or ("", block_of_late_call())


def origin_of(model: object) -> Origin | None:
    """The origin with which a model, or the last step of a pipeline, was pickled; None if there is none.

    In the process that opened the block of this origin, the result is `OUTSIDE`: the model has come back from
    another process, and this process knows its own open blocks.
    """
    steps = getattr(model, "steps", None)
    found: Origin | None = getattr(steps[-1][1] if steps else model, ORIGIN, None)
    return OUTSIDE if found is not None and found[1] in blocks.opened_here else found


@contextmanager
def join_budget(origin: Origin | None = None) -> Iterator[Budget | None]:
    """Fix the budget of a call when the call begins, so that other threads cannot change it later."""
    if _is_settled():
        yield active_budget()
        return
    settled = [_find(origin)]
    token = _settled.set(settled)
    try:
        yield active_budget()
    finally:
        _settled.reset(token)
        settled.clear()  # a copied context may still refer to this list


def active_budget() -> Budget | None:
    """The budget to which a release at this point of the program is charged; None outside of all blocks."""
    return (_settled.get() or [None])[0] if _is_settled() else _find(None)


def _is_settled() -> bool:
    """Whether the budget of the running call is fixed, and this code is in no block of another budget."""
    settled = _settled.get()
    return bool(settled) and blocks.entered.get() in (None, *(settled or ()))


@contextmanager
def charge_run(what: str, plan: Callable[[float], Planned]) -> Iterator[None]:
    """Reserve a real run in the active budget, if there is one; `plan(delta)` makes the run's certificate."""
    budget = active_budget()
    if budget is None:
        yield
        return
    run = budget.reserve(plan(budget.delta or DELTA), what)
    yield
    with suppress(LedgerError):  # noting the end of a run changes no cost
        budget.finish(run)


def _find(origin: Origin | None) -> Budget | None:
    """The budget of the block that is open in this process. If no block is open here: the budget of `origin`,
    else of an ancestor process, else of the block in which this process was started."""
    own, entered = blocks.open_here[-1] if blocks.open_here else None, blocks.entered.get()
    if entered is not None and entered != own:
        raise LedgerError(
            f"this task was started inside the budget {entered.path}, which is closed; {UNTOUCHED}. "
            "Await the task before the `with` block ends."
        )
    if own is not None:
        return own
    above, ended = blocks_of_ancestors()
    brought = "" if origin is None else origin[0]
    if above is not None and brought not in ("", above.path):
        raise LedgerError(
            f"the estimator was pickled in the budget {brought}, but the budget {above.path} is open now; "
            f"{UNTOUCHED}. Wait for the workers before the `with` block of a budget ends."
        )
    name, still = block_at_start()
    found = brought or (above.path if above else still.path if still else None)
    if found is None and (ended or name or block_of_late_call() or (origin or OUTSIDE)[1]):
        raise LedgerError(
            "this worker was running when the `with` block of a budget ended, so the call may come from "
            f"inside the block; {UNTOUCHED}. Open a budget for the call, or start new workers after the "
            "block (joblib: `joblib.externals.loky.get_reusable_executor().shutdown()`). Inside a block, "
            "wait for every call."
        )
    return None if found is None else Budget(found)


os.register_at_fork(after_in_child=lambda: _settled.set(None))
