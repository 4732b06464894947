"""Sweeps into a folder: each point once, a tidy table, a picture of the front."""

from __future__ import annotations

import csv
import json
import math
import tomllib

import numpy as np
import pytest

import taciturn as tt
from support.sweeps import GRID
from taciturn.core.errors import ParameterError
from taciturn.paper.figures.build import build_graph, build_method, build_problem
from taciturn.paper.sweeps import sweep
from taciturn.paper.sweeps.grid import load_grid, read_grid
from taciturn.paper.sweeps.sweep import plot_front


@pytest.fixture(scope="module")
def small():
    return read_grid(tomllib.loads(GRID))


@pytest.fixture(scope="module")
def swept(small, tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep")
    return sweep.run_sweep(small, out, engine="local"), out


def test_a_point_is_the_run_that_its_settings_describe(swept):
    result, _ = swept
    point, row = result.grid.points[3], result.rows[3]
    figure = point.figure
    problem, graph = build_problem(figure), build_graph(figure)
    method, _ = build_method(figure, figure.curves[0], problem, graph)
    run = tt.simulate(problem, graph, method, rounds=3, repeats=2, tol=1e-7)
    assert row.numbers["loss_mean"] == run.loss[:, -1].mean()
    assert row.numbers["epsilon"] == pytest.approx(run.certificate(1e-5).epsilon)
    assert row.numbers["paper_epsilon"] == pytest.approx(run.privacy_loss[-1])


def test_the_table_has_one_row_per_point(swept):
    result, out = swept
    rows = list(csv.DictReader((out / "small.csv").read_text().splitlines()))
    assert len(rows) == 4 and list(rows[0])[:2] == ["method.penalty.ratio", "run.rounds"]
    for row, stated in zip(result.rows, rows, strict=True):
        assert float(stated["epsilon"]) == row.numbers["epsilon"]
        assert int(stated["on_front"]) == row.on_front
    facts = json.loads((out / "small.json").read_text())
    assert facts["points"][2]["run"]["curves"][0]["penalty"]["ratio"] == 1.1 and facts["versions"]["numpy"]


def test_the_front_is_marked_and_drawn(swept):
    result, out = swept
    assert result.front and all(row.on_front for row in result.front)
    epsilons = [row.numbers["epsilon"] for row in result.front]
    losses = [row.numbers["loss_mean"] for row in result.front]
    assert epsilons == sorted(epsilons) and losses == sorted(losses, reverse=True)
    assert (out / "small.png").read_bytes().startswith(b"\x89PNG") and "<svg" in (
        out / "small.svg"
    ).read_text()
    axes = plot_front(result).axes[0]
    stairs = [line for line in axes.lines if line.get_drawstyle() == "steps-post"]
    assert len(stairs) == 1 and np.allclose(stairs[0].get_ydata(), losses)


def test_finished_points_are_not_run_again(swept, small, monkeypatch):
    result, out = swept
    monkeypatch.setattr(sweep, "run_point", lambda figure: pytest.fail("ran again"))
    again = sweep.run_sweep(small, out, engine="local")
    assert again.rows == result.rows


def test_an_interrupted_sweep_resumes_and_a_broken_file_counts_as_missing(
    swept, small, tmp_path, monkeypatch
):
    result, _ = swept
    ran, real = [], sweep.run_point

    def counted(figure):
        ran.append(figure)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return real(figure)

    monkeypatch.setattr(sweep, "run_point", counted)
    with pytest.raises(KeyboardInterrupt):
        sweep.run_sweep(small, tmp_path, engine="local")
    kept = sorted((tmp_path / "points").glob("*.json"))
    assert len(kept) == 2 and not (tmp_path / "small.csv").exists()
    kept[0].write_text("{")
    assert sweep.run_sweep(small, tmp_path, engine="local").rows == result.rows
    assert len(ran) == 3 + 3


def test_points_without_privacy_are_never_on_the_front(tmp_path):
    entries = tomllib.loads(GRID)
    entries["method"] = {"method": "admm", "penalty": 0.5}
    entries["axes"] = {"run.rounds": [2]}
    result = sweep.run_sweep(read_grid(entries), tmp_path, engine="local")
    assert result.rows[0].numbers["epsilon"] is None and not result.rows[0].on_front and result.front == []
    assert math.isfinite(result.rows[0].numbers["loss_mean"]) and (tmp_path / "small.png").exists()


def test_an_unknown_engine_is_named(small, tmp_path):
    with pytest.raises(ParameterError, match="`engine` must be one of local, ray, auto; got 'abacus'"):
        sweep.run_sweep(small, tmp_path, engine="abacus")


OWN = """
[data]
name = "table"
file = "rows.csv"
columns = { age = [0, 100], ward = ["a", "b"], smoker = "boolean" }
label = { column = "back", positive = "yes" }
sites = 3
"""


def _own(tmp_path, **changes):
    made = np.random.default_rng(0)
    age, lines = made.uniform(0, 100, 90), ["age,ward,smoker,back"]
    for k, one in enumerate(age):
        lines.append(f"{one:.1f},{'ab'[k % 2]},{'yes' if k % 3 else 'no'},{'yes' if one > 50 else 'no'}")
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    text = GRID.replace('[data]\nname = "breast-cancer"\nlimit = 60\nsites = 3\n', OWN.strip() + "\n")
    for old, new in changes.items():
        text = text.replace(old, new)
    (tmp_path / "grid.toml").write_text(text)
    return tmp_path / "grid.toml"


def test_user_table_can_be_swept(tmp_path, monkeypatch):
    grid = load_grid(_own(tmp_path))
    monkeypatch.chdir(tmp_path.parent)
    swept = sweep.run_sweep(grid, tmp_path / "out", engine="local")
    assert len(swept.rows) == 4 and all(row.numbers["loss_mean"] < 1 for row in swept.rows)
    (tmp_path / "moved").mkdir()
    again = load_grid(_own(tmp_path / "moved"))
    assert [one.key for one in again.points] == [one.key for one in grid.points], "not where it lies"
    lines = (tmp_path / "moved" / "rows.csv").read_text().replace("yes", "no", 40)
    (tmp_path / "moved" / "other.csv").write_text(lines)
    other = load_grid(_own(tmp_path / "moved", **{'"rows.csv"': '"other.csv"'}))
    assert {one.key for one in other.points}.isdisjoint(one.key for one in grid.points)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "table"', 'name = "adult"', "and only for it"),
        ('label = { column = "back", positive = "yes" }', "", "must be given together"),
        ("age = [0, 100]", "age = [100, 0]", "`age.high` must be above low"),
        ("age = [0, 100]", "age = 3", "`age` must be"),
    ],
)
def test_user_table_is_recorded_completely(tmp_path, old, new, words):
    with pytest.raises(ParameterError, match=words):
        load_grid(_own(tmp_path, **{old: new}))
