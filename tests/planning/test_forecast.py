"""The forecast matches runs where the loss is a parabola; the search finds its minimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from taciturn import Graph, LogCosh, Problem, simulate
from taciturn.methods.admm.tables import loss_facts
from taciturn.methods.admm.updates import network_average
from taciturn.planning.calibration import EpsilonBudget
from taciturn.planning.planned_run import calibrated_run
from taciturn.planning.proxy import generate_proxy
from taciturn.planning.search import fewest_rounds, forecast, search
from taciturn.planning.shapes import PlannedNetwork, RunShape
from taciturn.privacy.facts import RunFacts

Array = NDArray[np.float64]
D = 6
LOSS = LogCosh(100.0)  # a parabola as far as these runs go
PROXY = generate_proxy(D, 3_000, "regression", seed=1)


def network_of(samples: list[int], graph: Graph) -> PlannedNetwork:
    return PlannedNetwork(
        np.array(samples), graph.degrees, EpsilonBudget.of(2.0, 1e-5, sites=graph.n), 1.0, None
    )


def facts(sites: int) -> RunFacts:
    return RunFacts("penalty", "gaussian", loss_facts(LOSS), sites, 1, D, 1.0, 0.0)


def measured(network: PlannedNetwork, graph: Graph, shape: RunShape, f: Array, h: Array, Q: Array) -> float:
    """Excess of the released average over many runs in which every site holds the same rows."""
    planned = calibrated_run(network, facts(graph.n), shape, output_noise=False)
    assert planned is not None
    problem = Problem([(PROXY.X, PROXY.y)] * graph.n, loss=LOSS, C=1.0, regularization=planned.regularization)
    run = simulate(problem, graph, planned.method, rounds=shape.rounds, repeats=400, strict=False)
    off = (network_average(run.coef, network.weights) - f) @ Q
    return float(0.5 * (off**2 @ h).mean())


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("samples", [[2000] * 4, [500, 1000, 2000, 4000]], ids=["even", "uneven"])
def test_the_forecast_is_what_runs_do(samples: list[int], rounds: int) -> None:
    graph = Graph.complete(4)
    network = network_of(samples, graph)
    problem = Problem([(PROXY.X, PROXY.y)], loss=LOSS, C=1.0, regularization=1e-9)
    f = problem.optimum(1e-6)
    h, Q = np.linalg.eigh(problem.site(0).hessian(f))
    shape = RunShape(rounds, 1e-3, 1.2, 0.9, "gaussian", balanced=network.uneven)
    predicted = forecast(network, facts(4), [shape], (h, np.square(Q.T @ f)))[0]
    assert measured(network, graph, shape, f, h, Q) == pytest.approx(predicted, rel=0.25)


def test_no_small_step_from_the_best_shape_is_much_better() -> None:
    graph = Graph.ring(5)
    network = network_of([2000] * 5, graph)
    spectrum = PROXY.spectrum(LOSS)
    ranked = search(network, facts(5), spectrum, noises=("gaussian",))
    scores = [score for score, _ in ranked]
    assert scores == sorted(scores)
    assert sorted({shape.rounds for _, shape in ranked}) == [1, 2, 3, 4, 5, 6, 8, 12]
    score, best = ranked[0]
    near = [replace(best, pull=best.pull * step) for step in (0.5, 0.9, 1.1, 2.0)]
    assert np.all(forecast(network, facts(5), near, spectrum) > 0.99 * score)
    first = fewest_rounds(ranked, 1.2)[0]
    assert first.rounds <= best.rounds
    assert fewest_rounds([], 1.2) == []


def test_impossible_shapes_are_infinite() -> None:
    network = network_of([20] * 4, Graph.complete(4))
    shape = RunShape(2, 1e-9, 1.0, 1.0, "gaussian")
    assert forecast(network, facts(4), [shape], PROXY.spectrum(LOSS))[0] == np.inf
