"""What a sweep gives: a row for each point, and the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .grid import Grid


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
