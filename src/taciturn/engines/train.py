"""train: a real run in one process. The noise is secret, and cannot be seeded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from ..admm.methods import Method, PrimalPerturbation, Release
from ..admm.run import Run
from ..admm.tables import Tables
from ..errors import NotConverged, ParameterError
from ..graph import GraphLike
from ..objective.problem import Problem
from ..privacy.facts import Ceiling, RunFacts, SiteFacts
from ..privacy.ledger.disk import SqliteLedger
from ..privacy.ledger.memory import Ledger, MemoryLedger
from ..privacy.noise import GaussianNoise, NormNoise
from .local import run_local
from .setup import Setup, prepare

_WIDE = 1e4  # output noise in units of tol: what it covers then costs q / 5e7, or 2e-4 pure, a round
_GRID, _CLIP = 2.0**-22, 2.0**30

Opens = Callable[[RunFacts, Sequence[SiteFacts]], AbstractContextManager[Ledger]]


def train(
    problem: Problem,
    graph: GraphLike,
    method: Method,
    *,
    rounds: int,
    tol: float = 1e-9,
    history: bool = False,
    measure: bool = False,
    idealised: bool = False,
    ledger: str | PathLike[str] | Opens | None = None,
    ceiling: Ceiling | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Run:
    """Run `method` once, with noise from a CSPRNG that nobody can replay.

    A private method without `output_noise`, `grid` and `clip` of its own is given them by `covered`;
    `idealised` leaves it as it is, and the certificate then says so. `measure` records loss and accuracy,
    functions of the data that no noise covers: without it they are nan, and the run holds nothing but
    released vectors. `ledger` is a new file for a durable record: each charge is on disk before its release,
    and `ceiling` stops the run before a site passes it. A function of the run's facts may open one instead.
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
    check_samplers(setup.tables)
    try:
        with _journal(setup, ledger, ceiling) as journal:
            return run_local(setup, journal=journal, threads=threads, show=progress)
    except NotConverged:
        raise NotConverged(
            f"`tol` = {tol:g} is below what floats can certify here; raise it, or the penalty. "
            "Nothing was released, but that it failed depends on the data."
        ) from None  # the solver's own words hold a number that does


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
