"""Run a sweep, that is, every combination of some settings; one combination is a point.

Each point's result, a table of all points, and a plot of loss against epsilon are written to a folder.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ...core.files import write_whole
from ...core.progress import progress
from ...core.versions import versions
from ..figures import spec
from ..figures.runner import draw
from ..figures.style import DASHED, GREY, beside_axes, new_figure, paper_style, power_of_ten, save
from ..results_store import csv_text
from .grid import Grid, SweepResult, SweepRow, front, run_each

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
NUMBERS = (
    *("loss_mean", "loss_range", "accuracy_mean", "consensus_gap"),
    *("epsilon", "pure_epsilon", "paper_epsilon", "delta", "worst_site", "optimal_loss"),
)


def run_sweep(
    grid: Grid, out: Path, *, engine: str = "auto", address: str | None = None, show: bool | None = None
) -> SweepResult:
    """Run the points that have no result in `out` yet, then write the table and the picture.

    Parameters
    ----------
    engine : "local" runs one point after another; "ray" runs on a cluster, with one CPU per point; "auto"
        runs the first point in this process, and the other points on the cluster if that should be faster.
    address : the address of a running cluster; see `taciturn.runtime.ray.RayEngine`.
    show : True shows the progress, False does not show it, None shows it only on a terminal.
    """
    paths = [out / "points" / f"{point.key}.json" for point in grid.points]
    found = {path: numbers for path in paths if (numbers := _read_point(path)) is not None}
    left = {path: point for path, point in zip(paths, grid.points, strict=True) if path not in found}
    with progress(len(paths), "points", show=show) as step:
        step(len(paths) - len(left))
        todo, figures = list(left), [point.figure.model_dump(mode="json") for point in left.values()]
        for place, numbers in run_each(run_point, figures, engine=engine, address=address):
            write_whole(todo[place], json.dumps(numbers, allow_nan=False))
            found[todo[place]] = numbers
            step()
    swept = _collect(grid, [found[path] for path in paths])
    write_sweep(swept, out / grid.name)
    return swept


def _read_point(path: Path) -> dict[str, Any] | None:
    """The stored result of a point; None if the file is missing or cannot be used."""
    try:
        numbers = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return numbers if isinstance(numbers, dict) and set(numbers) == set(NUMBERS) else None


def run_point(figure: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point, given as a figure with one curve; return its numbers after the last round."""
    numbers = draw(spec.Figure.model_validate(figure)).outcomes[0].summary()
    return {name: numbers[name] for name in NUMBERS}


def _collect(grid: Grid, results: list[dict[str, Any]]) -> SweepResult:
    costs = [math.inf if numbers["epsilon"] is None else numbers["epsilon"] for numbers in results]
    best = front(costs, [numbers["loss_mean"] for numbers in results])
    rows = zip(grid.points, results, best, strict=True)
    return SweepResult(
        grid, tuple(SweepRow(point.settings, numbers, bool(on)) for point, numbers, on in rows)
    )


def write_sweep(swept: SweepResult, stem: Path) -> None:
    """Write stem.csv, stem.json, stem.png and stem.svg. Only the JSON file has all settings of each point."""
    axes, rows = swept.grid.axes, swept.rows
    records = [
        (*map(row.settings.get, axes), *map(row.numbers.get, NUMBERS), int(row.on_front)) for row in rows
    ]
    write_whole(stem.with_suffix(".csv"), csv_text([*axes, *NUMBERS, "on_front"], records))
    points = [
        {"settings": row.settings, **row.numbers, "on_front": row.on_front, "run": point.figure.model_dump()}
        for row, point in zip(rows, swept.grid.points, strict=True)
    ]
    facts = {"sweep": swept.grid.name, "axes": axes, "versions": versions(), "points": points}
    write_whole(stem.with_suffix(".json"), json.dumps(facts, indent=2, allow_nan=False))
    with paper_style():
        save(plot_front(swept), stem)


def plot_front(swept: SweepResult) -> Figure:
    """The picture of a sweep, with a point for each run.

    The value on the first axis of the sweep determines a point's colour, and the value on the second axis its
    marker. An axis with one value, or with too many values, determines nothing.
    """
    figure = new_figure(3.2)
    axes = figure.subplots()
    colours, markers = _looks(swept, 0, COLOURS), _looks(swept, 1, MARKERS)
    finite = [row for row in swept.rows if row.numbers["epsilon"] is not None]
    for row in finite:
        axes.plot(
            *_place(row),
            linestyle="none",
            marker=markers[_value(swept, row, 1)] if markers else "o",
            color=colours[_value(swept, row, 0)] if colours else COLOURS[0],
            markersize=5 if row.on_front else 3.5,
            alpha=1.0 if row.on_front else 0.45,
            markeredgewidth=0,
        )
    if best := swept.front:  # a staircase: between two points, the one with the smaller epsilon is the best
        epsilon, loss = zip(*map(_place, best), strict=True)
        axes.step(epsilon, loss, where="post", color=GREY, linewidth=0.9, zorder=1)
    levels = {row.numbers["optimal_loss"] for row in swept.rows}
    if len(levels) == 1:
        (level,) = levels
        axes.axhline(level, color=GREY, linewidth=0.7, linestyle=DASHED, zorder=0)
        beside_axes(axes, "without noise", level, (-2, 2), ha="right")
    if finite:
        _log_scale(axes)
    deltas = {row.numbers["delta"] for row in swept.rows}
    at = rf" at $\delta = {power_of_ten(deltas.pop())}$" if len(deltas) == 1 else ""
    axes.set_xlabel(rf"$\varepsilon${at}")
    axes.set_ylabel("average loss $L(T)$")
    axes.set_title(swept.grid.title, loc="left")
    handles = [*_legend(swept, 0, colours, "color"), *_legend(swept, 1, markers, "marker")]
    handles.append(Line2D([], [], color=GREY, linewidth=0.9, label="Pareto front"))
    figure.legend(handles=handles, loc="outside right upper")
    return figure


def _place(row: SweepRow) -> tuple[float, float]:
    return row.numbers["epsilon"], row.numbers["loss_mean"]


def _log_scale(axes: Axes) -> None:
    """Use a logarithmic x axis with ticks at 1, 2 and 5 times the powers of ten."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _looks(swept: SweepResult, axis: int, choices: tuple[str, ...]) -> dict[str, str]:
    """A colour or a marker for every value on an axis; empty if there is one value, or too many values."""
    if axis >= len(swept.grid.axes):
        return {}
    values = list(dict.fromkeys(_value(swept, row, axis) for row in swept.rows))
    return dict(zip(values, choices, strict=False)) if 1 < len(values) <= len(choices) else {}


def _value(swept: SweepResult, row: SweepRow, axis: int) -> str:
    value = row.settings[swept.grid.axes[axis]]
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _legend(swept: SweepResult, axis: int, looks: dict[str, str], kind: str) -> list[Any]:
    """The entries of the legend: the name of the axis, and one entry per value."""
    if not looks:
        return []
    plain: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": GREY, "markeredgewidth": 0}
    entries = [Line2D([], [], **{**plain, kind: look}, label=value) for value, look in looks.items()]
    return [Line2D([], [], linestyle="none", label=swept.grid.axes[axis]), *entries]
