"""A figure is computed once: a rerun reuses stored results and gives the same numbers and certificate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import taciturn as tt
from support.small import write_small
from taciturn.paper.figures import runner
from taciturn.paper.figures.runner import FigureResult, draw, settings
from taciturn.paper.figures.spec import Figure, load_figure
from taciturn.paper.results_store import ResultStore


def _figure(folder: Path, **changes: str) -> Figure:
    figure = load_figure(str(write_small(folder, **changes)))
    assert isinstance(figure, Figure)
    return figure


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods that were really run."""
    calls: list[str] = []
    simulate = runner.simulate

    def counting(problem: object, graph: object, method: object, **options: object) -> object:
        calls.append(type(method).__name__)
        return simulate(problem, graph, method, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "simulate", counting)
    return calls


def test_a_rerun_computes_nothing_and_gives_the_same(tmp_path: Path, counted: list[str]) -> None:
    store, figure = ResultStore(tmp_path / "curves"), _figure(tmp_path)
    first = draw(figure, store)
    assert counted == ["DualPerturbation", "PenaltyPerturbation", "PrimalPerturbation"]
    again = draw(figure, store)
    assert len(counted) == 3
    for a, b in zip(first.outcomes, again.outcomes, strict=True):
        assert np.array_equal(a.run.loss, b.run.loss) and np.array_equal(a.run.coef, b.run.coef)
        assert a.certificate.to_json() == b.certificate.to_json()
        assert a.run.settings == b.run.settings
        assert np.array_equal(a.epsilon, b.epsilon) and a.optimal_loss == b.optimal_loss


def test_a_stopped_run_resumes(tmp_path: Path, counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    store, figure = ResultStore(tmp_path / "curves"), _figure(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        draw(figure, store, done=_stop)
    assert counted == ["DualPerturbation"]
    draw(figure, store)
    assert counted == ["DualPerturbation", "PenaltyPerturbation", "PrimalPerturbation"]


def _stop() -> None:
    raise KeyboardInterrupt


def test_cache_key_ignores_appearance_and_depends_on_numbers(tmp_path: Path) -> None:
    figure = _figure(tmp_path)
    known = settings(figure, figure.curves[1])
    looks = _figure(tmp_path, **{'colour = "#0072B2"': 'colour = "#D55E00"', "PP, $q_1": "PP: $q_1"})
    assert settings(looks, looks.curves[1]) == known
    for change in (
        {"ratio = 1.1 }": "ratio = 1.2 }"},
        {"C = 20.0": "C = 21.0"},
        {"limit = 200": "limit = 201"},
    ):
        other = _figure(tmp_path, **change)
        assert settings(other, other.curves[1]) != known


def test_the_curves_are_those_of_the_library_called_directly(tmp_path: Path) -> None:
    drawn = draw(_figure(tmp_path), ResultStore(tmp_path / "curves"))
    outcome = drawn["PP"]
    noise = tt.NormNoise(tt.Geometric(3.0, 1.05))
    method = tt.PenaltyPerturbation(tt.Geometric(0.5, 1.1), 0.5, noise)
    run = tt.simulate(
        outcome.problem, tt.Graph.ring(3), method, rounds=4, repeats=2, start="random", tol=1e-8
    )
    assert np.array_equal(run.loss, outcome.run.loss)
    assert np.array_equal(run.privacy_loss, outcome.paper)
    certificate = run.certificate(1e-5)
    assert outcome.certificate.epsilon == pytest.approx(certificate.epsilon, rel=1e-9)
    assert outcome.certificate.worst_site == certificate.worst_site
    assert outcome.epsilon[-1] == pytest.approx(certificate.epsilon, rel=1e-6)
    assert outcome.pure[-1] == pytest.approx(certificate.pure_epsilon, rel=1e-9)
    with pytest.raises(KeyError):
        drawn["no such curve"]


def test_a_budget_is_spent_and_its_rate_is_kept(tmp_path: Path, counted: list[str]) -> None:
    budget = 'noise = { kind = "budget", epsilon = 2.0, ratio = 1.05 }'
    change = {'noise = { kind = "norm", rate = { kind = "geometric", start = 3.0, ratio = 1.05 } }': budget}
    store, figure = ResultStore(tmp_path / "curves"), _figure(tmp_path, **change)
    for _ in range(2):
        outcome = draw(figure, store)["PP"]
        assert 1.98 <= outcome.certificate.epsilon <= 2.0


def test_asking_for_more_rows_than_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(tt.errors.ParameterError, match=r"`data\.limit` must be at most 569"):
        draw(_figure(tmp_path, **{"limit = 200": "limit = 1000"}), ResultStore(tmp_path))


def test_distance_is_unknown_without_a_history(tmp_path: Path) -> None:
    drawn: FigureResult = draw(_figure(tmp_path), ResultStore(tmp_path / "curves"))
    assert np.isnan(drawn["PP"].distance).all()
