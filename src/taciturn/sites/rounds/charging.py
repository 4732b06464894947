"""Checks before a run starts or continues: the owner's approval, the account, and the high-water mark.

The account records what all jobs on a table have cost. The whole run is charged before its first message. The
high-water mark, stored outside the state folder, is the newest round that may have been sent. A state below
this mark was restored from a backup.
"""

from __future__ import annotations

from ...core.errors import BudgetExceeded, StateLost
from ...core.formatting import format_cost, format_given
from ..state.account import Account
from ..state.approval import require, what_for
from ..state.high_water import CONFIRM
from .prepare import PreparedSite
from .store import SiteStore


def admit(ready: PreparedSite, account: Account | None, store: SiteStore | None = None) -> None:
    """Check, before the site connects, that the owner approved the job and the account can pay for it.

    Without a `store`, the check is made only if the state file does not exist yet, so that a refused job
    creates no state file.
    """
    if account is None:
        _check_rehearsal(ready)
    if account is None or (store is None and ready.site.database.exists()):
        return
    if store is None or not store.charges:
        account.check_place()
    charged = store is not None and (bool(store.charges) or account.holds(store.id))
    if store is not None and charged:
        account.check(store.id)
    require(ready.site, ready.planned(), account, charged=charged)


def _check_rehearsal(ready: PreparedSite) -> None:
    """Refuse a rehearsal whose cost would exceed the budget, although a rehearsal charges nothing."""
    forecast, budget = ready.forecast(), ready.budget.epsilon
    if forecast.epsilon > budget:
        raise BudgetExceeded(
            f"all {ready.run.rounds} rounds would cost epsilon {format_cost(forecast.epsilon)}, but the "
            f"budget in site.toml is {format_given(budget)}; no noise was drawn and nothing was charged."
        )


def charge_first(ready: PreparedSite, account: Account | None, store: SiteStore) -> None:
    """Charge the whole run before its first message; before later messages, check the charge."""
    if account is None:
        return
    if store.charges:
        account.check(store.id)
    else:
        account.charge_once(store.id, ready.planned(), what_for(ready.site))


def read_mark(
    ready: PreparedSite, store: SiteStore, account: Account | None, *, newest: bool = False
) -> bool:
    """Return whether this state is the newest. If not, the site may have sent more than the state records.

    In a masked job (random masks hide each message) an older state is safe: a new attempt has new masks.
    In any other job, raise `StateLost` unless the owner confirms that no newer state exists (`newest`).
    """
    if account is None:
        return True
    run, marks, masked = store.id, account.marks, ready.prepared.padded
    forgotten = not store.charges and account.unfinished(what_for(ready.site), run)
    if forgotten and not newest and not masked:
        raise StateLost(
            "this table was already charged for this job, but that run did not finish and this `state` "
            f"folder has no record of it: the state was lost. {CONFIRM}"
        )
    mark = marks.read(run)
    try:
        marks.check(run, *store.reached, store.identity)
    except StateLost:
        if not newest and not masked:
            raise
        marks.confirm(run, *store.reached, store.identity)
        forgotten = True
    if forgotten:
        store.confirm(*((0, 0) if mark is None or masked else mark.reached))
        marks.confirm(run, *store.reached, store.identity)
    look_at_mark(store, account)
    return not forgotten


def look_at_mark(store: SiteStore, account: Account | None) -> None:
    """If the high-water mark turns this run's figures into lower bounds ('at least'), tell the store."""
    mark = None if account is None else account.marks.read(store.id)
    store.at_least |= mark is not None and mark.at_least
