"""Run a sweep. Write the result of each point, a table, and a plot of loss against epsilon to a folder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.files import write_whole
from ...core.progress import progress
from ...core.versions import versions
from ..figures import spec
from ..figures.runner import draw
from ..figures.style import paper_style, save
from ..figures.tables import csv_text
from .grid import Grid, SweepResult, SweepRow, front, run_each
from .plot_front import plot_front

NUMBERS = (
    *("loss_mean", "loss_range", "accuracy_mean", "consensus_gap"),
    *("epsilon", "pure_epsilon", "paper_epsilon", "delta", "worst_site", "optimal_loss"),
)


def run_sweep(
    grid: Grid, out: Path, *, engine: str = "auto", address: str | None = None, show: bool | None = None
) -> SweepResult:
    """Run the points whose results are not yet in `out`, then write the table and the picture.

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
    """The result of one point after its last round."""
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
    """Write stem.csv, stem.json, stem.png and stem.svg. The JSON file also has every point's settings."""
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
