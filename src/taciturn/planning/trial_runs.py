"""TrialRuns: simulate planned runs on public rows, and score the average model that each run would release.

A shape (`RunShape`) is a plan without the size of its noise. A `PlannedRun` is a shape with each site's
penalty and noise. Proxy rows are public rows in place of the private rows; some of them are held out for the
score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..graph import Graph
from ..methods.admm.updates import network_average
from ..objective import LocalObjective, Loss, Problem
from ..runtime.simulate import simulate
from .planned_run import PlannedRun
from .proxy import Proxy, rows_per_site
from .request import Trial
from .search import stable_digits
from .shapes import PlannedNetwork, RunShape

Calibrated = Callable[[RunShape], PlannedRun | None]
"""A function from a shape to its run with the smallest sufficient noise; None if no noise is enough."""

_REPEATS = 4  # runs of each shape, with independent noise
_WEAK = 1e-3  # rho / N (regularization / number of sites) of the model without privacy in `baseline`
_NEAR = 1.002  # prefer a run with fewer rounds if its loss is at most _NEAR times the best loss
_WORTH = 1.6  # run a shape if its forecast excess loss is at most _WORTH times the best forecast


class TrialRuns:
    """Proxy rows, divided among the sites once. All trial runs use this same division."""

    def __init__(self, network: PlannedNetwork, graph: Graph, loss: Loss, proxy: Proxy, seed: int) -> None:
        self._network, self._graph, self._loss, self._seed = network, graph, loss, seed
        rows = len(proxy.y)
        held = max(1, min(4_000, rows // 5))
        counts = rows_per_site(network.samples, proxy.X.shape[1])
        ends = np.cumsum(counts)
        deal = [np.arange(end - count, end) % (rows - held) for count, end in zip(counts, ends, strict=True)]
        self._sites = [(proxy.X[at], proxy.y[at]) for at in deal]
        size = max(self._graph.n / 50, proxy.X.shape[1] / 500)
        self._limit = 8 if size <= 1 else 4 if size <= 6 else 2  # the number of forecast shapes to run
        self._held = LocalObjective(
            proxy.X[rows - held :], proxy.y[rows - held :], loss=loss, C=1.0, regularization=1.0, sites=1
        )

    def choose(
        self, ranked: Sequence[tuple[float, RunShape]], calibrated: Calibrated
    ) -> tuple[PlannedRun | None, tuple[Trial, ...]]:
        """Run the shapes with the best forecasts, then variants of the best shape.

        Return (planned run, trials). A run with fewer rounds is chosen if its loss is almost the best.
        """
        limit = self._limit
        worth = [entry for entry in ranked if entry[0] <= _WORTH * ranked[0][0]][:limit]
        results = self._run(worth, calibrated)
        if results:
            best = min(results, key=lambda entry: _loss(entry[1]))[1].shape
            around = [replace(best, pull=best.pull * step) for step in (0.6, 1.6)]
            results += self._run([(np.nan, shape) for shape in around[: limit // 2]], calibrated)
        if not results:
            return None, ()
        least = min(_loss(entry[1]) for entry in results)
        good = [entry for entry in results if _loss(entry[1]) <= _NEAR * least]
        chosen = min(good, key=lambda entry: (entry[1].shape.rounds, _loss(entry[1])))[0]
        return chosen, tuple(sorted((entry[1] for entry in results), key=_loss))

    def _run(
        self, entries: Sequence[tuple[float, RunShape]], calibrated: Calibrated
    ) -> list[tuple[PlannedRun, Trial]]:
        results = []
        for predicted, shape in entries:
            planned = calibrated(shape)
            if planned is not None:
                loss, quality = self.score(planned)
                results.append(
                    (planned, Trial(shape, None if np.isnan(predicted) else predicted, loss, quality))
                )
        return results

    def baseline(self) -> float:
        """The mean loss, on held-out rows, of the best model without privacy."""
        sites = len(self._sites)
        problem = Problem(self._sites, loss=self._loss, C=1.0, regularization=_WEAK * sites)
        loss, _ = self._held.metrics(problem.optimum(tol=1e-6)[None])
        return float(loss[0])

    def score(self, planned: PlannedRun) -> tuple[float, float]:
        """Mean loss and accuracy (or mean absolute error) of the sites' average model on held-out rows."""
        problem = Problem(
            self._sites, loss=self._loss, C=planned.run.C, regularization=planned.regularization
        )
        run = simulate(
            problem,
            self._graph,
            planned.on_rows,
            rounds=planned.shape.rounds,
            repeats=_REPEATS,
            seed=self._seed,
            tol=1e-5,
            progress=False,
        )
        loss, quality = self._held.metrics(network_average(run.coef, planned.weights))
        return float(loss.mean()), float(quality.mean())


def _loss(tried: Trial) -> float:
    """The loss by which shapes are compared, rounded to nine digits."""
    return stable_digits(tried.loss or np.inf)
