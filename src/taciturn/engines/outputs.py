"""K models at once: one run for each, all on the same records, and one ledger for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..admm.run import Run
from ..errors import ParameterError
from ..privacy.facts import SiteBudget
from ..privacy.ledger.opening import LedgerLike, open_ledger
from ..privacy.ledger.shared import SharedLedger
from .local import run_local
from .setup import Setup


def run_outputs(
    setups: Iterable[Setup],
    *,
    ledger: LedgerLike | None = None,
    budget: SiteBudget | None = None,
    threads: int | None = None,
    show: bool | None = None,
) -> list[Run]:
    """One run per setup, one after the other; each setup says how many there are in all, `outputs`.

    A round is charged once, for all of them, before the first of them is released.
    """
    coming = iter(setups)
    first = next(coming)
    facts, sites = first.run_facts(), first.site_facts()
    setup: Setup | None = first
    del first
    runs: list[Run] = []
    with open_ledger(ledger, facts, sites, budget) as one:
        shared = SharedLedger(one) if facts.outputs > 1 else one
        while setup is not None:
            if (setup.run_facts(), setup.site_facts()) != (facts, sites):
                raise ParameterError("`setups` must agree in all that is charged; one has facts of its own.")
            runs.append(run_local(setup, ledger=shared, threads=threads, show=show))
            setup = next(coming, None)  # the rows of one output at a time
    return [replace(run, ledger=one) for run in runs]
