"""The one ledger that a run is charged to: a new file, an existing one, or one in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from ...core.errors import ParameterError
from ..facts import RunFacts, SiteBudget, SiteFacts
from .disk import SqliteLedger, check_agreement, plain_facts
from .memory import Ledger, MemoryLedger

LedgerLike = str | PathLike[str] | Ledger
"""A path, for a ledger on disk, or an open ledger."""


@contextmanager
def open_ledger(
    target: LedgerLike | None, run: RunFacts, sites: Sequence[SiteFacts], budget: SiteBudget | None = None
) -> Iterator[Ledger]:
    """The ledger of a run with these facts; it is closed at the end if it was opened here.

    A ledger that the caller opened must have the same facts; names of sites, marks and versions may differ.
    """
    if isinstance(target, Ledger):
        if budget is not None:
            raise ParameterError("`budget` must be left out with an open `ledger`, which has its own.")
        apart = ("versions", "marks", "name")
        check_agreement(plain_facts(run, sites), plain_facts(target.run, target.sites), apart=apart)
        yield target
    elif isinstance(target, str | PathLike):
        with SqliteLedger(Path(target), run, sites, budget) as durable:
            yield durable
    elif target is None:
        yield MemoryLedger(run, sites, budget)
    else:
        raise ParameterError(f"`ledger` must be a path or a ledger; got {type(target).__name__}.")
