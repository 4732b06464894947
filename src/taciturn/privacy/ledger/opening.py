"""The one ledger that a run is charged to: a new file, one that is there already, or one in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from ...errors import LedgerError, ParameterError
from ..facts import RunFacts, SiteBudget, SiteFacts
from ..facts_json import to_plain
from .disk import SqliteLedger
from .memory import Ledger, MemoryLedger

LedgerLike = str | PathLike[str] | Ledger
"""A path, for a ledger on disk, or an open ledger."""


@contextmanager
def open_ledger(
    target: LedgerLike | None, run: RunFacts, sites: Sequence[SiteFacts], budget: SiteBudget | None = None
) -> Iterator[Ledger]:
    """The ledger of a run with these facts; closed at the end where it was opened here.

    A ledger of the caller's must have been begun with them; names of sites, marks and versions may differ.
    """
    if isinstance(target, Ledger):
        if budget is not None:
            raise ParameterError("`budget` must be left out with an open `ledger`, which has its own.")
        _check_same(target, run, sites)
        yield target
    elif isinstance(target, str | PathLike):
        with SqliteLedger(Path(target), run, sites, budget) as durable:
            yield durable
    elif target is None:
        yield MemoryLedger(run, sites, budget)
    else:
        raise ParameterError(f"`ledger` must be a path or a ledger; got {type(target).__name__}.")


def _check_same(ledger: Ledger, run: RunFacts, sites: Sequence[SiteFacts]) -> None:
    given, begun = to_plain(run), to_plain(ledger.run)
    differ = [key for key in given if key not in ("versions", "marks") and given[key] != begun[key]]
    if differ:
        raise LedgerError(f"the ledger was begun with another `{differ[0]}`; a new run needs a new ledger.")
    if [_nameless(site) for site in sites] != [_nameless(site) for site in ledger.sites]:
        raise LedgerError("the ledger was begun with other sites; a new run needs a new ledger.")


def _nameless(site: SiteFacts) -> dict[str, object]:
    return {key: value for key, value in to_plain(site).items() if key != "name"}
