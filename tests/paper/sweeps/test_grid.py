"""grid.toml: every point is checked before the first one runs, and errors name the line."""

from __future__ import annotations

import tomllib

import pytest

from support.sweeps import GRID
from taciturn.core.errors import ParameterError
from taciturn.paper.sweeps.grid import load_grid, read_grid


def stated(**changes):
    entries = tomllib.loads(GRID)
    for name, value in changes.items():
        table = entries[name]
        entries[name] = {**table, **value} if isinstance(value, dict) and name != "axes" else value
    return entries


def test_points_differ_in_their_axes_and_nothing_else():
    grid = read_grid(stated())
    assert grid.name == "small" and grid.axes == ("method.penalty.ratio", "run.rounds")
    assert [tuple(point.settings.values()) for point in grid.points] == [
        (1.0, 2),
        (1.0, 3),
        (1.1, 2),
        (1.1, 3),
    ]
    first, last = grid.points[0].figure, grid.points[-1].figure
    assert first.run.rounds == 2 and last.run.rounds == 3 and last.curves[0].penalty.ratio == 1.1
    assert first.data == last.data and first.curves[0].noise == last.curves[0].noise
    assert len({point.key for point in grid.points}) == 4


def test_axis_may_vary_a_whole_table():
    noises = [{"kind": "norm", "rate": 2.0}, {"kind": "gaussian", "std": 0.5}]
    grid = read_grid(stated(axes={"method.noise": noises}))
    assert [point.figure.curves[0].noise.kind for point in grid.points] == ["norm", "gaussian"]


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        (
            {"run.rounds": [2, 0]},
            "at run.rounds = 0: `run.rounds` must be at least 1",
        ),
        (
            {"method.penalty.ratoi": [1.0]},
            r"`method.penalty`: a geometric .* these keys: \['ratoi'\]",
        ),
        (
            {"method.dual_step.x": [1.0]},
            "x must be a dotted key that leads .* tables; dual_step is not a TOML table",
        ),
        ({"run.rounds": []}, "run.rounds must have at least one value"),
        (
            {"data.seed": list(range(1001)), "run.seed": list(range(1000))},
            "at most 100,000 points; got 1,001,000",
        ),
        ({"run.rounds": 3}, "`axes.run.rounds` must be a list"),
    ],
)
def test_a_bad_axis_is_named(axes, words):
    with pytest.raises(ParameterError, match=words):
        read_grid(stated(axes=axes))


def test_unknown_and_missing_tables_are_named():
    with pytest.raises(ParameterError, match="`colour` is not a known key"):
        read_grid({**stated(), "colour": "red"})
    entries = stated()
    del entries["graph"]
    with pytest.raises(ParameterError, match="`graph` must be given"):
        read_grid(entries)


def test_the_file_is_named(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text("name = ")
    with pytest.raises(ParameterError, match=r"grid\.toml is not TOML"):
        load_grid(path)
    path.write_text(GRID.replace("rounds = 2", "rounds = -2").replace('"run.rounds" = [2, 3]', ""))
    with pytest.raises(ParameterError, match=r"grid\.toml: at .*: `run\.rounds`"):
        load_grid(path)
