"""Run the curves of a figure one after another. Each result is stored, so that it is not computed again.

A curve is one method with its parameters. L(t) is the mean loss after round t, and P(t) is the paper's bound
on the privacy cost of the rounds 1 .. t.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...core.types import Array
from ...core.versions import versions
from ...graph import Graph
from ...methods.admm.perturbations import Method
from ...methods.run import Run
from ...objective.problem import Problem
from ...privacy.certificate.certificate import Certificate
from ...privacy.certificate.claims import epsilon_curve, paper_curve, pure_curve
from ...runtime.setup import prepare
from ...runtime.simulate import simulate
from ..results_store import ResultStore, csv_text, fingerprint
from . import spec
from .build import build_graph, build_method, build_problem, load_rows

_DRAWN = {"name", "label", "panel", "colour", "marker", "line", "fit"}  # these change only the picture
_OPTIMUM_TOL = 1e-6
_FORMAT = 2  # the version of the format of stored results
_NUMBERS = ("loss", "accuracy", "consensus_gap", "coef", "history")  # the stored arrays of a run


@dataclass(frozen=True, eq=False)
class CurveResult:
    """One curve: its run, and the optimum, which a run without noise should reach.

    optimum : f_c*, the minimiser of the paper's eq. 1.
    optimal_loss : the paper's loss L at the optimum.
    key : the key of the result in the store.
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
        """The certificate of the run.

        If sites differ only in their number of rows, it covers only the site with the fewest rows.
        """
        ledger = self.run.ledger
        columns = [ledger.columns(facts.site) for facts in ledger.sites]
        schedules = {(c.eta.tobytes(), c.scale.tobytes(), c.degree.tobytes()) for c in columns}
        if len(schedules) > 1:
            return self.run.certificate(self.delta)
        row = int(np.argmin([facts.samples for facts in ledger.sites]))
        return Certificate.from_facts(ledger.run, (ledger.sites[row],), (None,), (columns[row],), self.delta)

    @cached_property
    def paper(self) -> Array:
        """P(t), the paper's bound after t rounds, (rounds,); infinite if Theorem 3 does not cover the run."""
        return paper_curve(self.run.ledger)

    @cached_property
    def pure(self) -> Array:
        """Our bound on epsilon for delta = 0, after each round, (rounds,)."""
        return pure_curve(self.certificate)

    @cached_property
    def epsilon(self) -> Array:
        """Our bound on epsilon at the figure's delta, after each round, (rounds,)."""
        return epsilon_curve(self.certificate)

    @cached_property
    def distance(self) -> Array:
        """max_i ||f_i(t) - f_c*|| / ||f_c*||, (repeats, rounds); NaN if the run has no history."""
        if self.run.history is None:
            return np.full_like(self.run.loss, np.nan)
        gaps = np.linalg.norm(self.run.history - self.optimum, axis=3).max(axis=2)
        return np.asarray(gaps.T / np.linalg.norm(self.optimum))

    @property
    def name(self) -> str:
        """The name of the curve and of its panel."""
        return f"{self.curve.name}, {self.curve.panel}" if self.curve.panel else self.curve.name

    @property
    def final_loss(self) -> float:
        """The mean of L(T) over the repeats."""
        return float(self.run.loss[:, -1].mean())

    def summary(self) -> dict[str, Any]:
        """The numbers of the curve after its last round. A number that is not finite becomes None."""
        loss, private = self.run.loss[:, -1], self.run.ledger.run.noise != "none"
        return {
            "panel": self.curve.panel,
            "curve": self.curve.name,
            "method": repr(self.method),
            "key": self.key,
            "loss_mean": self.final_loss,
            "loss_range": float(np.ptp(loss)),
            "accuracy_mean": float(self.run.accuracy[:, -1].mean()),
            "consensus_gap": float(self.run.consensus_gap[:, -1].max()),
            "distance": finite(self.distance[:, -1].max()),
            "optimal_loss": self.optimal_loss,
            "paper_epsilon": finite(self.paper[-1]),
            "pure_epsilon": finite(self.pure[-1]),
            "epsilon": finite(self.epsilon[-1]),
            "delta": self.delta,
            "worst_site": self.certificate.worst_site if private else None,
        }


class DrawnFigure(ABC):
    """The numbers of a figure, and how they are written to files."""

    figure: spec.AnyFigure
    columns: ClassVar[tuple[str, ...]]

    @abstractmethod
    def records(self) -> Iterator[tuple[Any, ...]]:
        """The rows of the CSV file below its header, `columns`."""

    @abstractmethod
    def summaries(self) -> list[dict[str, Any]]:
        """The main numbers, as JSON values."""

    def to_csv(self) -> str:
        """All numbers of the figure as CSV text, with ten significant digits."""
        return csv_text(self.columns, self.records(), digits=".10g")

    def to_json(self, *, quick: bool) -> str:
        """The settings, seed, versions and data checksums of the figure, and its main numbers, as JSON."""
        figure = self.figure
        facts = {
            "figure": figure.name,
            "quick": quick,
            "seed": figure.run.seed,
            "settings": figure.model_dump(),
            "data_sha256": dict(load_rows(figure.data).sha256),
            "versions": versions(),
            "results": self.summaries(),
        }
        return json.dumps(facts, indent=2, allow_nan=False)

    def provenance(self) -> dict[str, Any]:
        """Where the numbers come from: the data set, its checksums, and the name of the figure."""
        data = self.figure.data
        return {"data": data.name, "data_sha256": dict(load_rows(data).sha256), "figure": self.figure.name}


@dataclass(frozen=True, eq=False)
class FigureResult(DrawnFigure):
    """A figure and all its curves."""

    figure: spec.Figure
    outcomes: tuple[CurveResult, ...]

    columns: ClassVar = (
        *("figure", "panel", "curve", "method", "repeat", "round"),
        *("loss", "accuracy", "consensus_gap", "distance", "paper_epsilon", "pure_epsilon", "epsilon"),
    )

    def __getitem__(self, name: str | tuple[str, str]) -> CurveResult:
        """A curve, given by its name, or by a pair (name of its panel, name of the curve)."""
        panel, own = ("", name) if isinstance(name, str) else name
        for outcome in self.outcomes:
            if (outcome.curve.panel, outcome.curve.name) == (panel, own):
                return outcome
        raise KeyError(name)

    def panel(self, name: str) -> list[CurveResult]:
        """The curves of one row of panels."""
        return [outcome for outcome in self.outcomes if outcome.curve.panel == name]

    def records(self) -> Iterator[tuple[Any, ...]]:
        """One CSV row per curve, repeat and round; the privacy columns are the same in every repeat."""
        for one in self.outcomes:
            run, curve = one.run, one.curve
            for repeat, t in np.ndindex(*run.loss.shape):
                measured = (array[repeat, t] for array in (run.loss, run.accuracy, run.consensus_gap))
                spent = one.paper[t], one.pure[t], one.epsilon[t]
                names = self.figure.name, curve.panel, curve.name, curve.method, repeat, t + 1
                yield *names, *measured, one.distance[repeat, t], *spent

    def summaries(self) -> list[dict[str, Any]]:
        """The numbers of each curve after its last round."""
        return [outcome.summary() for outcome in self.outcomes]


def draw(
    figure: spec.Figure,
    store: ResultStore | None = None,
    *,
    engine: str = "local",
    done: Callable[[], None] = lambda: None,
) -> FigureResult:
    """Take stored curves from `store`, and run the other curves. Call `done` after each curve.

    Without `store`, all curves are run, and no result is stored.
    """
    outcomes: list[CurveResult] = []
    graph = build_graph(figure)
    for curve in figure.curves:
        alike = next((one for one in outcomes if one.curve.regularization == curve.regularization), None)
        outcomes.append(_outcome(figure, curve, graph, store or ResultStore(), engine, alike))
        done()
    return FigureResult(figure, tuple(outcomes))


def figure_settings(figure: spec.AnyFigure) -> dict[str, Any]:
    """Everything on which the numbers of all curves of a figure depend, as JSON values."""
    return {
        "data": figure.data.identity(),
        "sha256": dict(load_rows(figure.data).sha256),
        "graph": figure.graph.model_dump(),
        "problem": figure.problem.model_dump(),
        "run": figure.run.model_dump(),
        "versions": versions(),
    }


def settings(figure: spec.Figure, curve: spec.FigureCurve) -> dict[str, Any]:
    """Everything on which the numbers of a curve depend, as JSON values."""
    own = {"format": _FORMAT, "history": figure.layout == "convergence"}
    return figure_settings(figure) | own | {"curve": curve.model_dump(exclude=_DRAWN)}


def finite(value: float) -> float | None:
    """The number if it is finite, else None."""
    return float(value) if math.isfinite(value) else None


def _outcome(
    figure: spec.Figure,
    curve: spec.FigureCurve,
    graph: Graph,
    store: ResultStore,
    engine: str,
    alike: CurveResult | None,
) -> CurveResult:
    """The result of one curve. `alike` is an earlier curve with the same problem and optimum, or None."""
    key = fingerprint(settings(figure, curve))
    problem = build_problem(figure, curve.regularization) if alike is None else alike.problem
    kept = store.get(key)
    rate = None if kept is None else float(kept["rate"])
    method, rate = build_method(figure, curve, problem, graph, rate)
    options = figure.run.model_dump(exclude={"delta"}) | {"history": figure.layout == "convergence"}
    if kept is None:
        run = simulate(problem, graph, method, **options, engine=engine, progress=False)
        optimum = problem.optimum(tol=_OPTIMUM_TOL) if alike is None else alike.optimum
        losses = [problem.site(i).metrics(optimum[None])[0] for i in range(problem.n)]
        found = {"optimum": optimum, "optimal_loss": np.asarray(np.mean(losses)), "rate": np.asarray(rate)}
        arrays = {name: getattr(run, name) for name in _NUMBERS}
        kept = store.put(key, found | {name: array for name, array in arrays.items() if array is not None})
    else:  # compute the ledger again instead of storing it: the facts determine every cost in it
        setup = prepare(problem, graph, method, **options, strict=True)
        numbers = {name: kept.get(name) for name in _NUMBERS}
        run = Run(ledger=setup.prepared.price(setup.run_facts()), settings=setup.settings(), **numbers)  # type: ignore[arg-type]
    loss, delta = float(kept["optimal_loss"]), figure.run.delta
    return CurveResult(curve, problem, graph, method, run, kept["optimum"], loss, delta, key)
