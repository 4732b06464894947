"""What a sweep found: a row per point, and all of them as a table and as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.versions import versions
from .grid import Grid

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


@dataclass(frozen=True)
class SweepRow:
    """One point: its settings, what its run gave, and whether no other point beats it."""

    settings: Mapping[str, Any]
    numbers: Mapping[str, Any]
    on_front: bool


@dataclass(frozen=True, eq=False)
class SweepResult:
    """A sweep and its results, in the order of its points."""

    grid: Grid
    rows: tuple[SweepRow, ...]

    @property
    def front(self) -> list[SweepRow]:
        """The Pareto front, by epsilon."""
        return sorted((row for row in self.rows if row.on_front), key=lambda row: row.numbers["epsilon"])


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
