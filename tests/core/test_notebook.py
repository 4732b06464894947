"""Notebook output: a short text, a picture with labelled axes, and escaped names."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from taciturn.core.notebook import Panel, draw_panels, facts_table


@pytest.fixture(scope="module")
def run() -> tt.Run:
    problem = tt.Problem(make_sites(), loss=tt.Logistic(), C=20.0, regularization=0.5)
    method = tt.PenaltyPerturbation(tt.Geometric(0.5, 1.1), 0.5, tt.GaussianNoise(1.0))
    return tt.simulate(problem, "ring", method, rounds=4, repeats=3, seed=0)


def test_a_run_as_a_tidy_frame(run):
    pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    frame = run.to_frame()
    assert list(frame) == ["repeat", "round", "loss", "accuracy", "consensus_gap", "privacy_loss"]
    assert len(frame) == 12 and frame["round"].tolist()[:5] == [1, 2, 3, 4, 1]
    last = frame[(frame["repeat"] == 2) & (frame["round"] == 4)]["loss"].item()
    assert last == run.loss[2, 3]


def test_a_run_and_its_certificate_as_pictures(run):
    figure = run.plot()
    assert [axes.get_title() for axes in figure.axes] == ["Loss", "Accuracy", "Disagreement"]
    assert all(axes.get_xlabel() == "round" and axes.get_ylabel() for axes in figure.axes)
    assert np.array_equal(figure.axes[0].lines[0].get_ydata(), run.loss.mean(axis=0))
    drawn = run.certificate().plot().axes[0].lines[0].get_ydata()
    assert len(drawn) == 4 and drawn[-1] == pytest.approx(run.certificate().epsilon, rel=1e-6)


def test_a_regression_shows_its_error_and_no_accuracy():
    problem = tt.Problem(make_sites(), loss=tt.LogCosh(), C=20.0, regularization=0.5)
    run = tt.simulate(problem, "ring", tt.ADMM(0.5), rounds=2)
    assert [axes.get_title() for axes in run.plot().axes] == ["Loss", "Error", "Disagreement"]
    assert ">error<" in run._repr_html_() and "accuracy" not in run._repr_html_()


def test_rounds_are_whole_numbers(run):
    ticks = run.plot().axes[0].get_xticks()
    assert np.array_equal(ticks, np.round(ticks))


def test_what_was_not_measured_is_not_drawn():
    figure = draw_panels([Panel("One", "number", np.array([3.0]))])
    assert figure.axes[0].lines[0].get_marker() == "o", "one round is a point, not an empty chart"


def test_short_repr_and_a_table(run):
    certificate = run.certificate()
    assert len(repr(certificate)) < 120 and "simulated" in repr(certificate)
    page = certificate._repr_html_()
    assert "SIMULATED" in page and "<script" not in page and f"{certificate.delta:g}" in page
    assert "SIMULATED" in run._repr_html_() and "<td" in run._repr_html_()


def test_an_infinite_epsilon_is_stated_in_words():
    problem = tt.Problem(make_sites(), loss=tt.Logistic(), C=20.0, regularization=0.5)
    run = tt.simulate(problem, "ring", tt.ADMM(0.5), rounds=2)
    assert "epsilon=infinite" in repr(run.certificate())


def test_a_statement_comes_in_paragraphs_and_begins_with_what_is_not_real(run):
    certificate = run.certificate()
    first, done, *_ = paragraphs = certificate.statement().split("\n\n")
    assert first.startswith("SIMULATED: ") and "5 sites" in done
    assert certificate._repr_html_().count("<p ") == 2 + len(paragraphs)


@pytest.mark.parametrize("options", [{"effort": "quick"}, {"colluding": 1}])
def test_a_plan_shows_itself_in_few_words(options):
    found = tt.plan(
        epsilon=1.0,
        delta=1e-5,
        samples=[900] * 4,
        graph="complete",
        dimension=3,
        **options,
    )
    page = found._repr_html_()
    assert "nothing is spent" in page and "1e-05" in page and "<td" in page and "<script" not in page
    assert len(repr(found)) < 120
    assert float(repr(found).split("epsilon=")[1].split(",")[0]) >= found.certificate.epsilon


def test_names_cannot_write_markup():
    page = facts_table("<b>", {"<i>": "<script>alert(1)</script>"}, "<u>")
    assert "<b>" not in page and "<i>" not in page and "<script>" not in page and "<u>" not in page


def test_figure_is_a_picture_in_a_notebook_without_pyplot(run):
    picture, shown = run.certificate().plot()._repr_png_()
    assert picture.startswith(b"\x89PNG") and 2 * shown["width"] == int.from_bytes(picture[16:20], "big")


def test_full_statement_is_folded_away_and_the_cost_is_one_line(run):
    page = run.certificate()._repr_html_()
    shown, folded = page.split("<details>")
    assert "epsilon = " in shown and "SIMULATED" in shown and "differential privacy" not in shown
    assert "differential privacy" in folded


def test_a_plan_without_delta_shows_the_epsilon_without_delta():
    found = tt.plan(epsilon=2.0, delta=0, samples=[900] * 3, graph="complete", dimension=3, rounds=40)
    shown = float(repr(found).split("epsilon=")[1].split(",")[0])
    assert found.certificate.epsilon < found.certificate.pure_epsilon <= shown
