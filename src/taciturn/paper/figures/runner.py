"""A figure's curves, one after another; each is kept once it is done, so that a rerun goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...core.types import Array
from ...core.versions import versions
from ...graph import Graph
from ...methods.admm.perturbations import Method
from ...methods.run import Run
from ...objective.problem import Problem
from ...privacy.certificate.certificate import Certificate
from ...privacy.certificate.claims import epsilon_curve, paper_curve, pure_curve
from ...runtime.setup import Setup, prepare
from ...runtime.simulate import simulate
from ..results_store import Arrays, ResultStore, fingerprint
from . import spec
from .build import build_graph, build_method, build_problem, load_rows

_DRAWN = {"name", "label", "panel", "colour", "marker", "line", "fit"}  # the picture, not the numbers
_OPTIMUM_TOL = 1e-6
_FORMAT = 2  # of what is kept; raise it where that changes


@dataclass(frozen=True, eq=False)
class CurveResult:
    """One curve: its run, and the optimum that a run without noise is after.

    optimum : f_c*, the minimiser of eq. 1.
    optimal_loss : the paper's L at the optimum.
    """

    curve: spec.FigureCurve
    problem: Problem
    graph: Graph
    method: Method
    run: Run
    optimum: Array
    optimal_loss: float
    delta: float
    key: str

    @cached_property
    def certificate(self) -> Certificate:
        """What the worst site spent: where all have the same schedules, the one with the fewest rows."""
        ledger = self.run.ledger
        columns = [ledger.columns(facts.site) for facts in ledger.sites]
        schedules = {(c.eta.tobytes(), c.scale.tobytes(), c.degree.tobytes()) for c in columns}
        if len(schedules) > 1:
            return self.run.certificate(self.delta)
        row = int(np.argmin([facts.samples for facts in ledger.sites]))
        return Certificate.from_facts(ledger.run, (ledger.sites[row],), (None,), (columns[row],), self.delta)

    @cached_property
    def private(self) -> bool:
        """Whether there was noise at all."""
        return self.run.ledger.run.noise != "none"

    @cached_property
    def paper(self) -> Array:
        """P(t), (rounds,); infinite where Theorem 3 says nothing."""
        return paper_curve(self.run.ledger)

    @cached_property
    def pure(self) -> Array:
        """Our pure epsilon, (rounds,)."""
        return pure_curve(self.certificate)

    @cached_property
    def epsilon(self) -> Array:
        """Our epsilon at delta, (rounds,)."""
        return epsilon_curve(self.certificate)

    @cached_property
    def distance(self) -> Array:
        """max_i ||f_i(t) - f_c*|| / ||f_c*||, (repeats, rounds); needs the history."""
        if self.run.history is None:
            return np.full_like(self.run.loss, np.nan)
        gaps = np.linalg.norm(self.run.history - self.optimum, axis=3).max(axis=2)
        return np.asarray(gaps.T / np.linalg.norm(self.optimum))

    @property
    def name(self) -> str:
        """The curve by name, and its panel."""
        return f"{self.curve.name}, {self.curve.panel}" if self.curve.panel else self.curve.name

    @property
    def final_loss(self) -> float:
        """The mean of L(T) over the repeats."""
        return float(self.run.loss[:, -1].mean())


@dataclass(frozen=True, eq=False)
class FigureResult:
    """A figure and all its curves."""

    figure: spec.Figure
    outcomes: tuple[CurveResult, ...]

    def __getitem__(self, name: str | tuple[str, str]) -> CurveResult:
        """A curve by its name, or by the name of its panel and its own."""
        panel, own = ("", name) if isinstance(name, str) else name
        for outcome in self.outcomes:
            if (outcome.curve.panel, outcome.curve.name) == (panel, own):
                return outcome
        raise KeyError(name)

    def panel(self, name: str) -> list[CurveResult]:
        """The curves of one row of panels."""
        return [outcome for outcome in self.outcomes if outcome.curve.panel == name]


def draw(
    figure: spec.Figure,
    store: ResultStore | None = None,
    *,
    engine: str = "local",
    done: Callable[[], None] = lambda: None,
) -> FigureResult:
    """Run the curves that the store does not hold, take the others from it; `done` is called after each.

    Without a store nothing is kept.
    """
    outcomes: list[CurveResult] = []
    graph = build_graph(figure)
    for curve in figure.curves:
        alike = next((one for one in outcomes if one.curve.regularization == curve.regularization), None)
        outcomes.append(_outcome(figure, curve, graph, store, engine, alike))
        done()
    return FigureResult(figure, tuple(outcomes))


def settings(figure: spec.Figure, curve: spec.FigureCurve) -> dict[str, Any]:
    """Everything that a curve's numbers depend on, as plain JSON."""
    facts = figure.data
    return {
        "format": _FORMAT,
        "data": facts.identity(),
        "sha256": dict(load_rows(facts).sha256),
        "graph": figure.graph.model_dump(),
        "problem": figure.problem.model_dump(),
        "run": figure.run.model_dump(),
        "history": figure.layout == "convergence",
        "curve": curve.model_dump(exclude=_DRAWN),
        "versions": versions(),
    }


def _outcome(
    figure: spec.Figure,
    curve: spec.FigureCurve,
    graph: Graph,
    store: ResultStore | None,
    engine: str,
    alike: CurveResult | None,
) -> CurveResult:
    """One curve; `alike` is an earlier one with the same problem, whose optimum need not be found again."""
    key = fingerprint(settings(figure, curve))
    problem = build_problem(figure, curve.regularization) if alike is None else alike.problem
    kept = None if store is None else store.get(key)
    rate = None if kept is None else float(kept["rate"])
    method, rate = build_method(figure, curve, problem, graph, rate)
    if kept is None:
        run = simulate(problem, graph, method, **_options(figure), engine=engine, progress=False)
        optimum = problem.optimum(tol=_OPTIMUM_TOL) if alike is None else alike.optimum
        kept = _arrays(run) | {
            "optimum": optimum,
            "optimal_loss": _loss_at(problem, optimum),
            "rate": np.asarray(rate),
        }
        if store is not None:
            store.put(key, kept)
    else:
        run = _restore(prepare(problem, graph, method, **_options(figure), strict=True), kept)
    return CurveResult(
        curve=curve,
        problem=problem,
        graph=graph,
        method=method,
        run=run,
        optimum=kept["optimum"],
        optimal_loss=float(kept["optimal_loss"]),
        delta=figure.run.delta,
        key=key,
    )


def _options(figure: spec.Figure) -> dict[str, Any]:
    """The settings of a figure's runs, as `simulate` and `prepare` take it."""
    names = ("rounds", "repeats", "seed", "tol", "start")
    options = {name: getattr(figure.run, name) for name in names}
    return options | {"history": figure.layout == "convergence"}


def _arrays(run: Run) -> Arrays:
    arrays = {name: getattr(run, name) for name in ("loss", "accuracy", "consensus_gap", "coef")}
    return arrays if run.history is None else arrays | {"history": run.history}


def _restore(setup: Setup, kept: Arrays) -> Run:
    """The run as it was: its numbers from the store, its ledger from the facts, which fix every charge."""
    return Run(
        loss=kept["loss"],
        accuracy=kept["accuracy"],
        consensus_gap=kept["consensus_gap"],
        coef=kept["coef"],
        history=kept.get("history"),
        ledger=setup.prepared.price(setup.run_facts()),
        settings=setup.settings(),
    )


def _loss_at(problem: Problem, f: Array) -> Array:
    """The paper's L where every site holds f."""
    losses = [problem.site(i).metrics(f[None])[0] for i in range(problem.n)]
    return np.asarray(np.mean(losses))
