"""Run a sweep into a folder: one result per point, a tidy table, and the front of loss against epsilon."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.files import write_whole
from ...core.progress import progress
from ..figures import spec
from ..figures.runner import draw
from ..figures.style import paper_style, save
from ..figures.tables import summary
from ..results_store import Arrays, ResultStore
from .grid import Grid
from .plot_front import plot_front
from .points import front, run_each
from .result import NUMBERS, SweepResult, SweepRow, to_csv, to_json


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
    drawn = draw(spec.Figure.model_validate(figure), _NoStore(Path()))
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


class _ResultFolder:
    """Results on disk, one JSON file per point, named by fingerprint."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

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


class _NoStore(ResultStore):
    """A store that keeps nothing, because the driver stores the results."""

    def get(self, key: str) -> Arrays | None:
        return None

    def put(self, key: str, arrays: Arrays) -> None:
        """Nothing."""
