"""train: a real run in one process. The noise is secret, and cannot be seeded."""

from __future__ import annotations

from ..admm.methods import Method
from ..admm.trace import Run
from ..graph import Graph
from ..objective.problem import Problem
from .local import run_local
from .setup import prepare


def train(
    problem: Problem,
    graph: Graph,
    method: Method,
    *,
    rounds: int,
    tol: float = 1e-9,
    history: bool = False,
    measure: bool = False,
    threads: int | None = None,
    progress: bool | None = None,
) -> Run:
    """Run `method` once, with noise from a CSPRNG that nobody can replay.

    Give a private method `output_noise`, a little noise after the solve: without it the certificate says
    'idealised', since a solver that stops within `tol` of the minimiser is not the minimiser. `measure`
    records loss and accuracy, functions of the data that no noise covers: without it they are nan, and the
    run holds nothing but released vectors.
    """
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
    return run_local(setup, threads=threads, show=progress)
