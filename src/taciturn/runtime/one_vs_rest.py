"""run_charged: one run, or K runs on the same records (one model each) whose charges share one ledger."""

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
    """Carry out one run per setup, one after the other. `outputs` of every setup must be the number of runs.

    A round is charged once for all runs, before the first run releases it. Inside a `with Budget` block, the
    whole cost is first reserved in that budget, under the name `what`.
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
                raise ParameterError("`setups` must agree in all facts that affect the charge; two differ.")
            runs.append(run_local(setup, ledger=shared, threads=threads, show=show))
            setup = next(coming, None)  # the rows of only one run at a time are in memory
    return [replace(run, ledger=one) for run in runs]
