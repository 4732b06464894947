"""The setup of a run: what an engine needs to carry out the run, checked before the first round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..core import checks
from ..core.errors import ParameterError
from ..core.versions import versions
from ..graph import Graph, GraphLike
from ..methods.base import UNSAID, AnyProblem, Method, Network, PreparedMethod, RunOptions, UnreadRowsError
from ..objective.sources import SourcedProblem
from ..privacy.certificate.certificate import Certificate
from ..privacy.facts import RunFacts, SiteFacts


@dataclass(frozen=True)
class Setup:
    """One run: R repeats of T rounds on N sites. With a seed it is a simulation; else its noise is secret.

    history, measure : whether to keep every released vector, and whether to measure loss and accuracy.
    outputs : the number of runs on the same records, including this run, that are charged together.
    names, marks : the names of the sites, and warnings for the reader of the certificate.
    """

    problem: AnyProblem
    graph: Graph
    method: Method
    rounds: int
    repeats: int = 1
    seed: int | None = None
    options: RunOptions = UNSAID
    history: bool = False
    measure: bool = True
    outputs: int = 1
    names: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.method, type) or not isinstance(self.method, Method):
            raise ParameterError(
                "`method` must be an object with a `prepare` function, such as tt.ADMM(penalty=0.5); got "
                f"{self.method if isinstance(self.method, type) else type(self.method).__name__}."
            )
        for name, least in (("rounds", 1), ("repeats", 1), ("seed", 0)):
            if getattr(self, name) is not None or name != "seed":
                object.__setattr__(self, name, checks.whole(name, getattr(self, name), least=least))
        for name in ("history", "measure"):
            checks.flag(name, getattr(self, name))

    @cached_property
    def prepared(self) -> PreparedMethod:
        """The method, prepared with the numbers of this run. All numbers are checked."""
        network = Network.of(self.problem, self.graph, self.names)
        return self.method.prepare(network, self.rounds, self.options)

    def on(self, problem: AnyProblem) -> Setup:
        """The same run on `problem`, whose rows are loaded. A private method refuses rows of norm above 1."""
        setup = replace(self, problem=problem)
        if setup.prepared.private:
            problem.require_unit_rows()
        return setup

    def run_facts(self) -> RunFacts:
        """The facts that the accountant needs about the run as a whole."""
        simulated = self.seed is not None
        where = "" if simulated else "process"
        return self.prepared.run_facts(
            simulated=simulated, where=where, outputs=self.outputs, marks=self.marks
        )

    def site_facts(self) -> list[SiteFacts]:
        """The number of rows B_i, the number of neighbours V_i and the schedules of every site."""
        return self.prepared.site_facts()

    def forecast(self, delta: float) -> Certificate:
        """The certificate of the whole run, computed before the run."""
        return self.prepared.forecast(self.run_facts(), delta)

    def settings(self) -> dict[str, Any]:
        """The settings of the run as JSON values, which are stored with its results."""
        problem, graph = self.problem, self.graph
        return {
            "simulated": self.seed is not None,
            "seed": self.seed,
            "rounds": self.rounds,
            "repeats": self.repeats,
            "method": repr(self.method),
            **self.prepared.describe(),
            "graph": {"name": graph.name, "sites": graph.n, "edges": graph.edges},
            "loss": repr(problem.loss),
            "C": problem.C,
            "regularization": problem.regularization,
            "samples": problem.samples.tolist(),
            "dimension": problem.dimension,
            "versions": versions(),
        }


def prepare(
    problem: AnyProblem,
    graph: GraphLike,
    method: Method,
    *,
    tol: float | None = None,
    start: str | None = None,
    strict: bool | None = None,
    idealised: bool | None = None,
    **fields: Any,
) -> Setup:
    """The checked setup of a run. `fields` are fields of `Setup`; without `seed`, the noise is secret.

    Rows that are already loaded are checked here. An engine that loads rows later checks them by `Setup.on`.
    """
    options = RunOptions(fields.get("seed") is None, tol, start, strict, idealised)
    setup = Setup(problem, Graph.of(graph, problem.n), method, options=options, **fields)
    if not isinstance(problem, SourcedProblem) or not problem.unread:
        return setup.on(problem)
    try:
        setup.prepared  # noqa: B018 - checks every number that does not depend on the rows
    except UnreadRowsError:
        return setup.on(problem.load())
    return setup
