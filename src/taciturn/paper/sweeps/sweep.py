"""Run a sweep into a folder: one result per point, a tidy table, and the front of loss against epsilon."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.files import write_whole
from ...core.progress import progress
from ...core.versions import versions
from ..figures import spec
from ..figures.runner import draw
from ..figures.style import paper_style, save
from ..figures.tables import summary
from .grid import Grid, front, run_each
from .plot_front import plot_front
from .sweep_result import SweepResult, SweepRow

NUMBERS = (
    "loss_mean",
    "loss_range",
    "accuracy_mean",
    "consensus_gap",
    "epsilon",
    "pure_epsilon",
    "paper_epsilon",
    "delta",
    "worst_site",
    "optimal_loss",
)


def to_csv(swept: SweepResult) -> str:
    """One row per point: its settings, its numbers, and whether it is on the front."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*swept.grid.axes, *NUMBERS, "on_front"])
    for row in swept.rows:
        settings = [_cell(row.settings[axis]) for axis in swept.grid.axes]
        writer.writerow([*settings, *(_cell(row.numbers[name]) for name in NUMBERS), int(row.on_front)])
    return buffer.getvalue()


def to_json(swept: SweepResult) -> str:
    """The same, with every point's whole settings and the versions."""
    points = [
        {
            "settings": dict(row.settings),
            **row.numbers,
            "on_front": row.on_front,
            "run": point.figure.model_dump(),
        }
        for row, point in zip(swept.rows, swept.grid.points, strict=True)
    ]
    facts = {
        "sweep": swept.grid.name,
        "axes": list(swept.grid.axes),
        "versions": versions(),
        "points": points,
    }
    return json.dumps(facts, indent=2, allow_nan=False)


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, dict | list) else value


def run_sweep(
    grid: Grid, out: Path, *, engine: str = "auto", address: str | None = None, show: bool | None = None
) -> SweepResult:
    """Run the points whose results are not in `out` yet, then write the table and the picture.

    Parameters
    ----------
    engine : "local", one point after another; "ray", over a cluster, one CPU per point; "auto" runs the first
        point here, and the others on the cluster if that should be faster.
    address : of a running cluster; see `taciturn.runtime.ray.RayEngine`.
    show : True shows the progress, False does not, None only on a terminal.
    """
    kept = _ResultFolder(out / "points")
    keys = [point.key for point in grid.points]
    found = {key: numbers for key in keys if (numbers := kept.get(key)) is not None}
    left = {key: point for key, point in zip(keys, grid.points, strict=True) if key not in found}
    with progress(len(keys), "points", show=show) as step:
        step(len(keys) - len(left))
        todo, figures = list(left), [point.figure.model_dump(mode="json") for point in left.values()]
        for place, numbers in run_each(run_point, figures, engine=engine, address=address):
            kept.put(todo[place], numbers)
            found[todo[place]] = numbers
            step()
    swept = _collect(grid, [found[key] for key in keys])
    write_sweep(swept, out)
    return swept


def run_point(figure: Mapping[str, Any]) -> dict[str, Any]:
    """The result of one point after its last round."""
    drawn = draw(spec.Figure.model_validate(figure))
    numbers = summary(drawn.outcomes[0])
    return {name: numbers[name] for name in NUMBERS}


def write_sweep(swept: SweepResult, out: Path) -> None:
    """name.csv, name.json, name.png and name.svg."""
    stem = out / swept.grid.name
    write_whole(stem.with_suffix(".csv"), to_csv(swept))
    write_whole(stem.with_suffix(".json"), to_json(swept))
    with paper_style():
        save(plot_front(swept), stem)


def _collect(grid: Grid, results: list[dict[str, Any]]) -> SweepResult:
    costs = [math.inf if numbers["epsilon"] is None else numbers["epsilon"] for numbers in results]
    best = front(costs, [numbers["loss_mean"] for numbers in results])
    rows = zip(grid.points, results, best, strict=True)
    return SweepResult(
        grid, tuple(SweepRow(point.settings, numbers, bool(on)) for point, numbers, on in rows)
    )


@dataclass(frozen=True)
class _ResultFolder:
    """Results on disk, one JSON file per point, named by fingerprint."""

    folder: Path

    def get(self, key: str) -> dict[str, Any] | None:
        """The stored result; an unreadable file counts as missing."""
        try:
            numbers = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return numbers if isinstance(numbers, dict) and set(numbers) == set(NUMBERS) else None

    def put(self, key: str, numbers: Mapping[str, Any]) -> None:
        """Store the result atomically."""
        write_whole(self.folder / f"{key}.json", json.dumps(numbers, allow_nan=False))
