"""train: a real run in one process. The noise is secret and cannot be seeded."""

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
    """Run `method` once, with secret noise from a cryptographic generator that cannot be seeded.

    A private method of the paper gets defaults for `output_noise`, `grid` and `clip` if they are not set. The
    default of `tol` is so large that floats can certify it for any rows, because a failed solve would reveal
    something about the rows. `idealised` leaves the method as it is, and the certificate says so. `measure`
    records loss and accuracy, which no noise protects; by default both are nan, and the run contains only
    released vectors. `ledger` is a new file, in which each charge is on disk before the charged message is
    released, or an open ledger that was created for this run. `budget` stops the run before a site exceeds
    this budget. Inside a `with Budget` block, the cost of the whole run is first reserved in that `Budget`.
    MaskedDescent has no solver, so it refuses `tol` and `idealised`.
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
