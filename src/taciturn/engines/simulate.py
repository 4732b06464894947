"""simulate: a run in the laboratory, seeded and replayable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from .. import checks
from ..admm.methods import Method
from ..admm.run import Run
from ..errors import ParameterError
from ..graph import GraphLike
from ..objective.problem import Problem
from ..objective.softmax import SoftmaxProblem
from ..objective.sources import SourcedProblem
from .checkpoint import Checkpoint
from .choice import choose, cpus_here, is_masked
from .local import run_local
from .setup import Setup, Start, prepare

if TYPE_CHECKING:
    from ..masked.method import MaskedDescent
    from .masked import MaskedSetup


@runtime_checkable
class Engine(Protocol):
    """What drives a run somewhere else: `taciturn.engines.RayEngine`."""

    def run(self, setup: Setup, *, show: bool | None = None) -> Run:
        """Drive `setup` through all rounds."""
        ...


@runtime_checkable
class MaskedEngine(Engine, Protocol):
    """One that drives masked descent too."""

    def run_masked(self, setup: MaskedSetup, *, show: bool | None = None) -> Run:
        """Drive `setup` through all rounds."""
        ...


@contextmanager
def one_cluster(engine: str) -> Iterator[None]:
    """Inside, all runs with engine "ray" share one cluster; nothing else is changed."""
    if engine != "ray":
        yield
        return
    from .ray.cluster import cluster

    with cluster(None, cpus_here()):
        yield


def simulate(
    problem: Problem | SourcedProblem | SoftmaxProblem,
    graph: GraphLike,
    method: Method | MaskedDescent,
    *,
    rounds: int,
    repeats: int = 1,
    seed: int = 0,
    tol: float = 1e-8,
    start: Start = "zeros",
    strict: bool = True,
    history: bool = False,
    engine: str | Engine = "local",
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | PathLike[str] | None = None,
    every: int = 10,
) -> Run:
    """Run `method` on `problem` over `graph`, many repeats at once.

    Parameters
    ----------
    graph : who talks to whom: a `Graph`, "complete", "ring", "star" or "path", or a networkx graph.
    rounds, repeats : T, and how many independent runs share each matrix product.
    seed : one stream per (repeat, site, purpose): adding a site or a repeat changes no other's noise. The
        noise can be replayed, so the certificate says `simulated`.
    tol : bound on the distance of every solved vector from the exact minimiser, ||gradient|| / m. Masked
        descent solves nothing, and knows neither `tol` nor `strict`.
    start : f(0), "zeros" or "random".
    strict : refuse a penalty that decreases or falls below the dual step, which the paper's theorems need.
    history : keep every released vector, (rounds, repeats, sites, features).
    engine : "local", one process; "ray", a cluster, or a `taciturn.RayEngine` that says which; "auto", the
        one that should be done first. The vectors are the same to the last bit.
    threads : how many sites are solved at a time by the local engine; by default the number of cores, or
        one where sites are so small that threads would wait for each other.
    progress : True shows it, False does not, None only on a terminal.
    checkpoint : a folder for the local engine. The next call with the same arguments goes on from the newest
        checkpoint in it, to the same bits. A cluster's is that of `RayEngine`.
    every : rounds between checkpoints, a multiple of 10.

    Returns
    -------
    Run
        loss, accuracy, consensus_gap, coef, privacy_loss and `certificate(delta)`.

    Examples
    --------
    >>> import numpy as np, taciturn
    >>> X = np.eye(4) / 2
    >>> sites = [(X, np.array([1.0, 1.0, -1.0, -1.0]))] * 3
    >>> problem = taciturn.Problem(sites, loss=taciturn.Logistic(), C=1.0, regularization=0.1)
    >>> run = taciturn.simulate(problem, "ring", taciturn.ADMM(penalty=0.5), rounds=5)
    >>> run.loss.shape, run.coef.shape
    ((1, 5), (1, 3, 4))
    """
    if not isinstance(engine, Engine):
        checks.choice("engine", engine, ("local", "ray", "auto"))
    seed = checks.whole("seed", seed)
    if checkpoint is not None and is_masked(method):
        raise ParameterError("`checkpoint` must be None for MaskedDescent: its runs are short.")
    if is_masked(method):
        from .masked import prepare_masked, run_masked

        _check_masked(start)
        masked = prepare_masked(
            problem, graph, method, rounds=rounds, repeats=repeats, seed=seed, history=history, measure=True
        )
        if engine in ("local", "auto"):
            return run_masked(masked, threads=threads, show=progress)
        driver = _cluster(engine)
        if not isinstance(driver, MaskedEngine):
            raise ParameterError(
                "`engine` must have `run_masked` for MaskedDescent; 'local' and 'ray' have it."
            )
        return driver.run_masked(masked, show=progress)
    if isinstance(problem, SoftmaxProblem):
        raise ParameterError("`method` must be MaskedDescent for a SoftmaxProblem.")
    setup = prepare(
        problem,
        graph,
        method,
        rounds=rounds,
        repeats=repeats,
        seed=seed,
        tol=tol,
        start=start,
        strict=strict,
        history=history,
    )
    if engine == "auto":
        engine = choose(setup)
    if engine == "local":
        if checkpoint is None:
            return run_local(setup, threads=threads, show=progress)
        saver = Checkpoint.at(checkpoint, every)
        with saver.held():
            return run_local(setup, threads=threads, show=progress, checkpoint=saver)
    if checkpoint is not None:
        raise ParameterError("`checkpoint` is for engine 'local'; a cluster's goes into RayEngine(...).")
    return _cluster(engine).run(setup, show=progress)


def _cluster(engine: str | Engine) -> Engine:
    """The engine itself, or that of the word "ray"."""
    if isinstance(engine, Engine):
        return engine
    from .ray import RayEngine  # an extra: only those who ask for it need it

    return RayEngine()


def _check_masked(start: Start) -> None:
    if start != "zeros":
        raise ParameterError(f"`start` must be 'zeros' for MaskedDescent; got {start!r}.")
