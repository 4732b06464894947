"""Real runs in one process: their noise is secret and cannot be seeded. Several runs may share one ledger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from ..core.errors import ParameterError
from ..graph import GraphLike
from ..methods.base import AnyProblem, Method
from ..methods.run import Run
from ..privacy.facts import SiteBudget
from ..privacy.ledger.active import charge_run, join_budget
from ..privacy.ledger.disk import LedgerLike, open_ledger
from ..privacy.ledger.shared import SharedLedger
from .local import run_local
from .setup import Setup, prepare


@join_budget()
def train(
    problem: AnyProblem,
    graph: GraphLike,
    method: Method,
    *,
    rounds: int,
    tol: float | None = None,
    history: bool = False,
    measure: bool = False,
    idealised: bool | None = None,
    ledger: LedgerLike | None = None,
    budget: SiteBudget | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Run:
    """Run `method` once, with secret noise from a cryptographic generator that cannot be seeded.

    A private method of the paper gets defaults for `output_noise`, `grid` and `clip` if they are not set. The
    default of `tol` is so large that the solver reaches it for any rows, because a failed solve would reveal
    something about the rows. With `idealised=True`, the method gets no defaults, and the certificate says
    that it assumes an exact solver. MaskedDescent has no solver, so it refuses `tol` and `idealised`. With
    `measure=True` the run contains loss and accuracy, which no noise protects; by default both are nan.

    `ledger` is the path of a new file, or an open ledger that was created for this run. In a file, each
    charge is on disk before the message is released. The run stops before a site exceeds `budget`. Inside a
    `with Budget` block, the cost of the whole run is first reserved in that `Budget`.
    """
    setup = prepare(
        problem,
        graph,
        method,
        rounds=rounds,
        tol=tol,
        idealised=idealised,
        history=history,
        measure=measure,
    )
    return run_charged([setup], ledger=ledger, budget=budget, threads=threads, show=progress)[0]


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

    All runs share one ledger. The first run charges a round for all runs before it releases its message.
    Inside a `with Budget` block, the whole cost is first reserved in that budget, under the name `what`.
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
