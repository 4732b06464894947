"""train: a real run in one process. The noise is secret, and cannot be seeded."""

from __future__ import annotations

from ..graph import GraphLike
from ..methods.base import AnyProblem, Method
from ..methods.run import Run
from ..privacy.facts import SiteBudget
from ..privacy.ledger.active import join_budget
from ..privacy.ledger.disk import LedgerLike
from .one_vs_rest import run_charged
from .setup import prepare


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
    """Run `method` once, with noise from a CSPRNG that cannot be replayed.

    A private method of the paper without `output_noise`, `grid` and `clip` of its own is given them. So is
    `tol`: one that floats certify whatever the rows are, since a failed solve reveals something about them.
    `idealised` leaves the method as it is, and the certificate then says so. `measure` records loss and
    accuracy, functions of the data that no noise covers: without it they are nan, and the run holds nothing
    but released vectors. `ledger` is a new file for a durable record, where each charge is on disk before its
    release, or an open ledger that was begun with the facts of this run. `budget` stops the run before a
    site passes it; inside a `Budget` the whole run is reserved there first. MaskedDescent solves nothing, and
    refuses `tol` and `idealised`.
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
