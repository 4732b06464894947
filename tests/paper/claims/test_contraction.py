"""The quantity of Theorem 2, on a problem small enough to see that the bound is nearly reached."""

from __future__ import annotations

import pytest

from support.small import write_small
from taciturn.core.errors import ParameterError
from taciturn.methods.admm.theory import rate
from taciturn.paper.claims.convergence import contractions
from taciturn.paper.figures.runner import FigureResult, draw
from taciturn.paper.figures.spec import Figure, load_figure
from taciturn.paper.results_store import ResultStore

CHANGES = {
    'layout = "tradeoff"': 'layout = "convergence"',
    'method = "dual"': 'method = "madmm"\ndual_step = 0.5',
    'noise = { kind = "norm", rate = 3.0 }': "",
    'method = "penalty"': 'method = "madmm"',
    '{ kind = "geometric", start = 0.5, ratio = 1.1 }': "[0.5, 0.6, 0.7]",
    'noise = { kind = "norm", rate = { kind = "geometric", start = 3.0, ratio = 1.05 } }': "",
    "rounds = 4": "rounds = 30",
    "regularization = 0.1": "regularization = 3.0",
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> FigureResult:
    folder = tmp_path_factory.mktemp("contraction")
    figure = load_figure(str(write_small(folder, **CHANGES)))
    assert isinstance(figure, Figure)
    return draw(figure, ResultStore(folder / "curves"))


def test_every_round_shrinks_by_at_least_the_bound(drawn: FigureResult) -> None:
    outcome = drawn["DVP"]
    ratios = contractions(outcome)
    assert len(ratios) == 29
    bound = rate(outcome.problem, outcome.graph, outcome.method, 30)
    assert ratios.min() >= 1 + bound.delta > 1


def test_the_run_comes_nearer_to_the_optimum(drawn: FigureResult) -> None:
    distance = drawn["DVP"].distance[0]
    assert distance[-1] < 0.05 * distance[0]


def test_unequal_penalties_are_refused(drawn: FigureResult) -> None:
    with pytest.raises(ParameterError, match="the same penalties"):
        contractions(drawn["PP"])
