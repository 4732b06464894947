"""A user's figure by path: pictures, tables and pages with the numbers of the runs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from support.small import write_small
from taciturn.cli.app import run
from taciturn.core.errors import ParameterError
from taciturn.paper.figures.runner import FigureResult
from taciturn.paper.reproduce import reproduce


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FigureResult]:
    folder = tmp_path_factory.mktemp("own")
    result = reproduce([str(write_small(folder))], folder / "out")
    (drawn,) = result.drawn.values()
    assert isinstance(drawn, FigureResult) and result.claims == ()
    return folder / "out", drawn


def test_pictures_are_pictures(made: tuple[Path, FigureResult]) -> None:
    out, _ = made
    assert (out / "small.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (out / "small.svg").read_text("utf-8")


def test_the_csv_has_one_row_per_curve_repeat_and_round(made: tuple[Path, FigureResult]) -> None:
    out, drawn = made
    rows = list(csv.DictReader((out / "small.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 3 * 2 * 4
    for row in rows:
        outcome, repeat, t = drawn[row["curve"]], int(row["repeat"]), int(row["round"]) - 1
        assert float(row["loss"]) == pytest.approx(outcome.run.loss[repeat, t], rel=1e-9)
        assert float(row["accuracy"]) == pytest.approx(outcome.run.accuracy[repeat, t], rel=1e-9)
        assert float(row["paper_epsilon"]) == pytest.approx(outcome.paper[t], rel=1e-9)
        assert float(row["epsilon"]) == pytest.approx(outcome.epsilon[t], rel=1e-9)
        assert row["distance"] == ""


def test_json_records_all_inputs_of_the_numbers(made: tuple[Path, FigureResult]) -> None:
    out, drawn = made
    stated = json.loads((out / "small.json").read_text("utf-8"))
    assert stated["settings"]["problem"]["C"] == 20.0 and stated["seed"] == 0 and stated["quick"] is False
    assert (
        set(stated["versions"]) >= {"taciturn", "numpy", "python"}
        and len(stated["data_sha256"]["rows"]) == 64
    )
    by_name = {row["curve"]: row for row in stated["results"]}
    assert by_name["PP"]["loss_mean"] == drawn["PP"].final_loss
    assert by_name["PVP"]["paper_epsilon"] is None and by_name["PVP"]["pure_epsilon"] is None


def test_a_picture_made_again_is_the_same(made: tuple[Path, FigureResult], tmp_path: Path) -> None:
    out, _ = made
    reproduce([str(write_small(tmp_path))], out)
    before = (out / "small.svg").read_bytes(), (out / "small.png").read_bytes()
    reproduce([str(write_small(tmp_path))], out)
    assert ((out / "small.svg").read_bytes(), (out / "small.png").read_bytes()) == before


def test_the_command_writes_the_pages_too(
    made: tuple[Path, FigureResult], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = made
    assert run(["reproduce", str(write_small(tmp_path)), "--out", str(out)]) == 0
    assert "index.html" in capsys.readouterr().out
    page = (out / "index.html").read_text("utf-8")
    assert "data:image/svg+xml" in page and "http://" not in page and "https://" not in page
    assert "Two methods on little data" in (out / "small.html").read_text("utf-8")


def test_a_figure_may_have_only_curves_that_do_not_extend_its_axis(tmp_path: Path) -> None:
    changes = {"colour =": "fit = false\ncolour =", '"#009E73"\nfit = false': '"#009E73"'}
    result = reproduce([str(write_small(tmp_path, **changes))], tmp_path / "out", quick=True)
    assert (tmp_path / "out" / "small.png").stat().st_size > 1000 and "small" in str(result.drawn.keys())


def test_page_of_a_panel_stays_in_its_folder(tmp_path: Path) -> None:
    panel = '[[panels]]\nname = "../ε = 1"\ntitle = "A"\n[quick.run]'
    path = write_small(tmp_path, **{"[quick.run]": panel, "label =": 'panel = "../ε = 1"\nlabel ='})
    assert run(["reproduce", str(path), "--quick", "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "small-..-ε-1.html").exists() and not list(tmp_path.glob("*.html"))


def test_two_figures_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    paths = [str(write_small(tmp_path)), str(write_small(tmp_path / "b"))]
    with pytest.raises(ParameterError, match="`name` must differ"):
        reproduce(paths, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unknown_engine_is_refused_even_if_no_curve_is_left_to_compute(
    made: tuple[Path, FigureResult],
) -> None:
    out, _ = made
    with pytest.raises(ParameterError, match="`engine`"):
        reproduce([str(out.parent / "small.toml")], out, engine="spark")


def test_a_wrong_name_is_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["reproduce", "fig9", "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("taciturn: `figure` must be one of fig1a")
