"""train: a real run in one process. The noise is secret, and cannot be seeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..admm.methods import Method
from ..admm.run import Run
from ..admm.tables import Tables
from ..errors import ParameterError
from ..graph import Graph, GraphLike
from ..objective.problem import Problem
from ..objective.softmax import SoftmaxProblem
from ..privacy.facts import SiteBudget
from ..privacy.ledger.opening import LedgerLike
from ..privacy.noise import GaussianNoise, NormNoise
from .choice import is_masked
from .cover import cover_method
from .outputs import run_outputs
from .setup import Setup, prepare

if TYPE_CHECKING:
    from ..masked.method import MaskedDescent

_TOL = 1e-9


def train(
    problem: Problem | SoftmaxProblem,
    graph: GraphLike,
    method: Method | MaskedDescent,
    *,
    rounds: int,
    tol: float | None = None,
    history: bool = False,
    measure: bool = False,
    idealised: bool = False,
    ledger: LedgerLike | None = None,
    budget: SiteBudget | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Run:
    """Run `method` once, with noise from a CSPRNG that nobody can replay.

    A private method without `output_noise`, `grid` and `clip` of its own is given them by `cover_method`. So
    is `tol`: one that floats certify whatever the rows are, since a solve that gives up tells about them.
    `idealised` leaves the method as it is, and the certificate then says so. `measure` records loss and
    accuracy, functions of the data that no noise covers: without it they are nan, and the run holds nothing
    but released vectors. `ledger` is a new file for a durable record, where each charge is on disk before its
    release, or an open ledger that was begun with the facts of this run. `budget` stops the run before a
    site passes it; inside a `Budget` the whole run is reserved there first. Masked descent solves nothing:
    `tol` and `idealised` are not for it.
    """
    if is_masked(method):
        from .masked import prepare_masked, run_and_charge

        masked = prepare_masked(
            problem, graph, method, rounds=rounds, repeats=1, seed=None, history=history, measure=measure
        )
        return run_and_charge(masked, ledger=ledger, budget=budget, threads=threads, show=progress)
    if isinstance(problem, SoftmaxProblem):
        raise ParameterError("`method` must be MaskedDescent for a SoftmaxProblem.")
    setup = prepare_real(
        problem, graph, method, rounds=rounds, tol=tol, history=history, measure=measure, idealised=idealised
    )
    return run_outputs([setup], ledger=ledger, budget=budget, threads=threads, show=progress)[0]


def prepare_real(
    problem: Problem,
    graph: GraphLike,
    method: Method,
    *,
    rounds: int,
    tol: float | None = None,
    history: bool = False,
    measure: bool = False,
    idealised: bool = False,
    outputs: int = 1,
    names: tuple[str, ...] = (),
    marks: tuple[str, ...] = (),
) -> Setup:
    """The setup of a real run, checked."""
    graph = Graph.of(graph, problem.n)
    if graph.n != problem.n:
        raise ParameterError(f"`graph` must have one node per site, {problem.n}; got {graph.n}.")
    if idealised:
        tol = _TOL if tol is None else tol
    else:
        method, tol = cover_method(problem, graph, method, rounds=rounds, tol=tol)
    setup = prepare(
        problem,
        graph,
        method,
        rounds=rounds,
        repeats=1,
        seed=None,
        tol=tol,
        start="zeros",
        strict=True,
        history=history,
        measure=measure,
        outputs=outputs,
        names=names,
        marks=marks,
    )
    check_samplers(setup.tables)
    return setup


def check_samplers(tables: Tables) -> None:
    """Raise unless the noise is drawn as it is charged: a subclass may sample what it likes."""
    for name, noise in (("noise", tables.noise), ("output_noise", tables.output_noise)):
        if noise is not None and type(noise) not in (NormNoise, GaussianNoise):
            raise ParameterError(
                f"`{name}` must be NormNoise or GaussianNoise itself in a real run; "
                f"got {type(noise).__name__}."
            )
