"""train: a real run in one process. The noise is secret, and cannot be seeded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from pathlib import Path

from ..admm.methods import Method
from ..admm.run import Run
from ..admm.tables import Tables
from ..errors import ParameterError
from ..graph import Graph, GraphLike
from ..objective.problem import Problem
from ..privacy.facts import Ceiling, RunFacts, SiteFacts
from ..privacy.ledger.disk import SqliteLedger
from ..privacy.ledger.memory import Ledger, MemoryLedger
from ..privacy.noise import GaussianNoise, NormNoise
from .cover import covered
from .local import run_local
from .setup import Setup, prepare

_TOL = 1e-9

Opens = Callable[[RunFacts, Sequence[SiteFacts]], AbstractContextManager[Ledger]]


def train(
    problem: Problem,
    graph: GraphLike,
    method: Method,
    *,
    rounds: int,
    tol: float | None = None,
    history: bool = False,
    measure: bool = False,
    idealised: bool = False,
    ledger: str | PathLike[str] | Opens | None = None,
    ceiling: Ceiling | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Run:
    """Run `method` once, with noise from a CSPRNG that nobody can replay.

    A private method without `output_noise`, `grid` and `clip` of its own is given them by `covered`, and so
    is `tol`: one that floats certify whatever the rows are, since a solve that gives up tells about them.
    `idealised` leaves the method as it is, and the certificate then says so. `measure` records loss and
    accuracy, functions of the data that no noise covers: without it they are nan, and the run holds nothing
    but released vectors. `ledger` is a new file for a durable record: each charge is on disk before its
    release, and `ceiling` stops the run before a site passes it. A function of the run's facts may open one
    instead.
    """
    graph = Graph.of(graph, problem.n)
    if graph.n != problem.n:
        raise ParameterError(f"`graph` must have one node per site, {problem.n}; got {graph.n}.")
    if idealised:
        tol = _TOL if tol is None else tol
    else:
        method, tol = covered(problem, graph, method, rounds=rounds, tol=tol)
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
    )
    check_samplers(setup.tables)
    with _journal(setup, ledger, ceiling) as journal:
        return run_local(setup, journal=journal, threads=threads, show=progress)


@contextmanager
def _journal(
    setup: Setup, target: str | PathLike[str] | Opens | None, ceiling: Ceiling | None
) -> Iterator[Ledger | None]:
    """A ledger on disk where there is a path, one in memory where there is only a ceiling, else none."""
    facts = setup.run_facts(), setup.site_facts(), ceiling
    if callable(target):
        with target(*facts[:2]) as opened:
            yield opened
    elif target is not None:
        with SqliteLedger(Path(target), *facts) as durable:
            yield durable
    else:
        yield None if ceiling is None else MemoryLedger(*facts)


def check_samplers(tables: Tables) -> None:
    """Raise unless the noise is drawn as it is charged: a subclass may sample what it likes."""
    for name, noise in (("noise", tables.noise), ("output_noise", tables.output_noise)):
        if noise is not None and type(noise) not in (NormNoise, GaussianNoise):
            raise ParameterError(
                f"`{name}` must be NormNoise or GaussianNoise itself in a real run; "
                f"got {type(noise).__name__}."
            )
