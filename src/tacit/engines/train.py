"""train: a real run in one process. The noise is secret, and cannot be seeded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..admm.methods import Method, PrimalPerturbation, Release
from ..admm.trace import Run
from ..graph import Graph
from ..objective.problem import Problem
from ..privacy.noise import GaussianNoise, NormNoise
from .local import run_local
from .setup import prepare

_WIDE = 1e4  # output noise in units of tol: what it covers then costs q / 5e7, or 2e-4 pure, a round
_GRID, _CLIP = 2.0**-22, 2.0**30


def train(
    problem: Problem,
    graph: Graph,
    method: Method,
    *,
    rounds: int,
    tol: float = 1e-9,
    history: bool = False,
    measure: bool = False,
    idealised: bool = False,
    threads: int | None = None,
    progress: bool | None = None,
) -> Run:
    """Run `method` once, with noise from a CSPRNG that nobody can replay.

    A private method without `output_noise`, `grid` and `clip` of its own is given them by `covered`;
    `idealised` leaves it as it is, and the certificate then says so. `measure` records loss and accuracy,
    functions of the data that no noise covers: without it they are nan, and the run holds nothing but
    released vectors.
    """
    setup = prepare(
        problem,
        graph,
        method if idealised else covered(method, tol),
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


def covered(method: Method, tol: float) -> Method:
    """The same method with what a real run needs and the method does not say.

    A little noise after the solve, of the method's own kind: a solver that stops within `tol` of the
    minimiser is not the minimiser, and no guarantee survives that without it. A grid for what is released:
    the low bits of a float tell more than the real number that it stands for.
    """
    if not isinstance(method, Release):
        return method
    needed: dict[str, Any] = {}
    if method.output_noise is None and not isinstance(method, PrimalPerturbation):
        gaussian = isinstance(getattr(method, "noise", None), GaussianNoise)
        needed["output_noise"] = GaussianNoise(_WIDE * tol) if gaussian else NormNoise(1 / (_WIDE * tol))
    if method.grid is None and method.clip is None:
        needed |= {"grid": _GRID, "clip": _CLIP}
    return replace(method, **needed)
