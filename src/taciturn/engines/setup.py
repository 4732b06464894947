"""What a run needs, checked as a whole before the first round: shared by the engines that run all sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from .. import checks
from ..admm import accounts
from ..admm.methods import Method
from ..admm.tables import Tables
from ..admm.theory import convergence
from ..errors import ParameterError
from ..graph import Graph, GraphLike
from ..objective.problem import Problem
from ..objective.softmax import SoftmaxProblem
from ..objective.sources import SourcedProblem
from ..privacy.facts import RoundCharges, RunFacts, SiteFacts
from ..privacy.ledger.memory import MemoryLedger
from ..privacy.noise import GaussianNoise, draw
from ..rng import SecureStreams, SeededStreams, Streams
from ..types import Array
from ..versions import versions

Start = Literal["zeros", "random"]


@dataclass(frozen=True)
class Setup:
    """One run: R repeats of T rounds on N sites. With a seed a simulation; without, secret noise.

    outputs, names, marks : what its certificate says besides: how many runs on the same records share its
        ledger, what the sites are called, and what a reader must be told.
    """

    problem: Problem | SourcedProblem
    graph: Graph
    method: Method
    tables: Tables
    repeats: int
    seed: int | None
    tol: float
    start: Start
    history: bool
    refresh: int = 10
    measure: bool = True
    outputs: int = 1
    names: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    @property
    def rounds(self) -> int:
        return self.tables.rounds

    def streams(self) -> Streams:
        """Where the noise comes from: seeded streams, or a keyed CSPRNG that cannot be replayed."""
        return SecureStreams() if self.seed is None else SeededStreams(self.seed)

    def on(self, problem: Problem | SourcedProblem) -> Setup:
        """The same run on rows that have been looked at; private methods refuse long ones."""
        if self.tables.private:
            problem.require_unit_rows()
        return replace(self, problem=problem)

    def start_vectors(self) -> Array:
        """f(0) of all sites, (sites, repeats, d)."""
        shape = (self.repeats, self.problem.dimension)
        return start_vectors(self.start, range(self.graph.n), shape, self.streams())

    def charges(self, t: int, sites: range | None = None) -> RoundCharges:
        """What these sites release in round t; all of them by default."""
        return accounts.charges(self.tables, t, range(self.graph.n) if sites is None else sites)

    def run_facts(self) -> RunFacts:
        """All that the accountant must know of the run as a whole."""
        problem = self.problem
        return accounts.run_facts(
            self.tables,
            problem.loss,
            dimension=problem.dimension,
            C=problem.C,
            regularization=problem.regularization * problem.regularizer.strong_convexity,
            tol=self.tol,
            simulated=self.seed is not None,
            where="process" if self.seed is None else "",
            sites=self.graph.n,
            outputs=self.outputs,
            start=self.start,
            persons=problem.persons,
            marks=self.marks,
        )

    def settings(self) -> dict[str, Any]:
        """The settings of the run as plain JSON, for every artefact made from it."""
        numbers = {"rounds": self.rounds, "repeats": self.repeats, "tol": self.tol, "start": self.start}
        return describe_run(self.problem, self.graph, self.method, self.seed, numbers)

    def site_facts(self) -> list[SiteFacts]:
        """B_i, V_i and the dual steps of every site."""
        facts = accounts.site_facts(self.tables, self.problem.samples, self.graph.degrees)
        if not self.names:
            return facts
        return [replace(site, name=name) for site, name in zip(facts, self.names, strict=True)]

    def planned_ledger(self) -> MemoryLedger:
        """The ledger that the run will leave behind."""
        return accounts.planned_ledger(self.tables, self.run_facts(), self.site_facts())


def describe_run(
    problem: Problem | SoftmaxProblem | SourcedProblem,
    graph: Graph,
    method: object,
    seed: int | None,
    numbers: Mapping[str, Any],
) -> dict[str, Any]:
    """A run as plain JSON: what it was asked to do, to whose rows, and with which versions."""
    return {
        "simulated": seed is not None,
        "seed": seed,
        **numbers,
        "method": repr(method),
        "graph": {"name": graph.name, "sites": graph.n, "edges": graph.edges},
        "loss": repr(problem.loss),
        "C": problem.C,
        "regularization": problem.regularization,
        "samples": problem.samples.tolist(),
        "dimension": problem.dimension,
        "versions": versions(),
    }


def start_vectors(start: Start, sites: Sequence[int], shape: tuple[int, int], streams: Streams) -> Array:
    """f(0), (sites, *shape): zeros, or standard normal from the streams; never from the data."""
    if start == "zeros":
        return np.zeros((len(sites), *shape))
    return draw(GaussianNoise(1.0), streams, "start", 0, np.array(sites), np.ones(len(sites)), shape)


def prepare(
    problem: Problem | SourcedProblem,
    graph: GraphLike,
    method: Method,
    *,
    rounds: int,
    repeats: int,
    seed: int | None,
    tol: float,
    start: Start,
    strict: bool,
    history: bool,
    measure: bool = True,
    outputs: int = 1,
    names: tuple[str, ...] = (),
    marks: tuple[str, ...] = (),
) -> Setup:
    """Check everything that can be wrong with a run, and put it together.

    Rows that are not here yet are checked by `Setup.on`, when an engine has loaded them.
    """
    graph = Graph.of(graph, problem.n)
    tables = method.tables(problem.n, rounds)
    if strict:
        _check_theorem_1(method, problem.n, rounds)
    setup = Setup(
        problem=problem,
        graph=graph,
        method=method,
        tables=tables,
        repeats=checks.whole("repeats", repeats, least=1),
        seed=None if seed is None else checks.whole("seed", seed),
        tol=checks.positive("tol", tol),
        start="random" if checks.choice("start", start, ("zeros", "random")) == "random" else "zeros",
        history=history,
        measure=measure,
        outputs=outputs,
        names=names,
        marks=marks,
    )
    return setup if isinstance(problem, SourcedProblem) else setup.on(problem)


def _check_theorem_1(method: Method, sites: int, rounds: int) -> None:
    """The two conditions that a typing error breaks; without them no theorem of the paper holds."""
    nondecreasing, above, *_ = convergence(method, sites, rounds).hypotheses
    for hypothesis in (nondecreasing, above):
        if not hypothesis.holds:
            name, words = hypothesis.name.split(" ", 1)
            raise ParameterError(
                f"`{name}` must be {words}; {hypothesis.detail}. "
                "Theorems 1 to 3 of the paper need it; `strict=False` runs all the same."
            )
