"""The function `simulate`: a run for experiments, with seeded noise that gives no privacy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Protocol, runtime_checkable

from ..core import checks
from ..core.errors import ParameterError
from ..graph import GraphLike
from ..methods.base import AnyProblem, Method
from ..methods.run import Run
from .checkpoint import Checkpoint, check_resumable
from .engine_selection import choose, cpus_here
from .local import run_local
from .setup import Setup, prepare


@runtime_checkable
class Engine(Protocol):
    """The interface of an engine such as `taciturn.runtime.RayEngine`."""

    def run(self, setup: Setup, *, show: bool | None = None) -> Run:
        """Run all rounds of `setup`."""
        ...


@contextmanager
def one_cluster(engine: str) -> Iterator[None]:
    """A block in which all runs share one cluster if `engine` is "ray"; for others, it does nothing."""
    if engine != "ray":
        yield
        return
    from .ray.cluster import cluster

    with cluster(None, cpus_here()):
        yield


def simulate(
    problem: AnyProblem,
    graph: GraphLike,
    method: Method,
    *,
    rounds: int,
    repeats: int = 1,
    seed: int = 0,
    tol: float | None = None,
    start: str | None = None,
    strict: bool | None = None,
    history: bool = False,
    engine: str | Engine = "local",
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | PathLike[str] | None = None,
    every: int | None = None,
) -> Run:
    """Simulate `method` on `problem` over the links of `graph`, with all repeats computed together.

    Parameters
    ----------
    graph : the links between sites: a `Graph`, "complete", "ring", "star" or "path", or a networkx graph.
    rounds, repeats : the number of rounds, and the number of independent runs.
    seed : the seed of the noise. Each (repeat, site, purpose) has its own stream, so adding a site or a
        repeat changes no other noise. Anyone with the seed can draw the same noise, so the certificate says
        `simulated`.
    tol : a bound on the distance of every solved vector from the exact minimiser; 1e-8 by default. The
        solver bounds this distance by ||gradient|| / m, for an m-strongly convex objective. MaskedDescent
        has no solver, and refuses `tol` and `strict`.
    start : f(0), the models before round 1: "zeros" (the default) or "random".
    strict : whether to refuse a penalty that decreases or is below the dual step, because the paper's
        theorems do not cover it; True by default.
    history : whether to keep every released vector, (rounds, repeats, sites, features).
    engine : "local" for one process; "ray" for a cluster, or a `taciturn.runtime.ray.RayEngine` with its
        address; "auto" for the engine that should be faster (with `checkpoint`, always the local engine). All
        engines give the same vectors to the last bit.
    threads : the number of threads of the local engine; by default the number of cores, or 1 if the sites are
        so small that threads would wait for each other.
    progress : whether to show the progress of the run; None shows it only on a terminal.
    checkpoint : a folder for checkpoints of the local engine. After an interruption, a call with the same
        arguments resumes from the newest checkpoint, with the same bits. For a cluster, give the folder to
        `RayEngine`.
    every : the number of rounds between checkpoints, a multiple of 10; 10 by default.

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
    if engine != "local" and threads is not None:
        raise ParameterError(f"`threads` must be None unless `engine` is 'local'; got {threads}.")
    if checkpoint is None and every is not None:
        raise ParameterError(
            f"`every` needs a `checkpoint` folder: give `checkpoint`, or leave out `every`; got {every}."
        )
    setup = prepare(
        problem,
        graph,
        method,
        rounds=rounds,
        repeats=repeats,
        seed=checks.whole("seed", seed),
        tol=tol,
        start=start,
        strict=strict,
        history=history,
    )
    check_resumable(setup, checkpoint)
    if engine == "auto":
        engine = choose(setup) if checkpoint is None else "local"
    if engine == "local":
        if checkpoint is None:
            return run_local(setup, threads=threads, show=progress)
        saver = Checkpoint.at(checkpoint, 10 if every is None else every)
        with saver.held():
            return run_local(setup, threads=threads, show=progress, checkpoint=saver)
    if checkpoint is not None:
        raise ParameterError(
            f"`checkpoint` must be None for this `engine`; use RayEngine(checkpoint=...); got {checkpoint!r}."
        )
    return cluster_engine(engine).run(setup, show=progress)


def cluster_engine(engine: str | Engine) -> Engine:
    """The engine itself, or a `RayEngine` for the name "ray"."""
    if isinstance(engine, Engine):
        return engine
    from .ray import RayEngine  # Ray is an optional dependency, so it is imported only if it is used

    return RayEngine()
