"""A charged run; or K of them, one model each, all on the same records and one ledger for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from ..core.errors import ParameterError
from ..methods.run import Run
from ..privacy.facts import SiteBudget
from ..privacy.ledger.active import charge_run
from ..privacy.ledger.disk import LedgerLike, open_ledger
from ..privacy.ledger.shared import SharedLedger
from .local import run_local
from .setup import Setup


def run_charged(
    setups: Iterable[Setup],
    *,
    ledger: LedgerLike | None = None,
    budget: SiteBudget | None = None,
    threads: int | None = None,
    show: bool | None = None,
    what: str = "train",
) -> list[Run]:
    """One run per setup, one after the other; each setup says how many there are in all, `outputs`.

    A round is charged once, for all of them, before the first of them is released. Inside a `Budget` the
    whole run is reserved there first, under the name `what`.
    """
    coming = iter(setups)
    first = next(coming)
    facts, sites = first.run_facts(), first.site_facts()
    reserved = charge_run(what, partial(first.prepared.forecast, facts))
    setup: Setup | None = first
    del first
    runs: list[Run] = []
    with reserved, open_ledger(ledger, facts, sites, budget) as one:
        shared = SharedLedger(one) if facts.outputs > 1 else one
        while setup is not None:
            if (setup.run_facts(), setup.site_facts()) != (facts, sites):
                raise ParameterError("`setups` must agree in all facts that are charged; one differs.")
            runs.append(run_local(setup, ledger=shared, threads=threads, show=show))
            setup = next(coming, None)  # the rows of one output at a time
    return [replace(run, ledger=one) for run in runs]
