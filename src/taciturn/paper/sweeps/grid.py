"""A sweep's TOML file -> its points, all checked before the first one runs.

[data] [graph] [problem] [run]    as in the file of a figure
[method]                          method, penalty, dual_step, noise, as in a figure's curve
[axes]                            "method.penalty.ratio" = [1.0, 1.02, 1.04]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from ...core.errors import ParameterError
from ...core.toml import complaint, read_toml
from ..figures import spec
from ..figures.figure_file import place_own_table
from ..figures.runner import settings
from ..results_store import fingerprint
from .points import grid, place_settings

_MOST = 100_000
_DRAWN = {"name": "point", "label": "point", "colour": "#000000"}


class SweepFile(spec.FigureTable):
    """What the file says; what its tables hold is checked point by point."""

    name: Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,40}$")]
    title: str = ""
    data: dict[str, Any]
    graph: dict[str, Any]
    problem: dict[str, Any]
    run: dict[str, Any]
    method: dict[str, Any]
    axes: dict[str, list[Any]]


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One combination: its settings by axis, and the run that they make."""

    settings: Mapping[str, Any]
    figure: spec.Figure

    @property
    def key(self) -> str:
        """A fingerprint of all that its numbers depend on."""
        return fingerprint(settings(self.figure, self.figure.curves[0]))


@dataclass(frozen=True, eq=False)
class Grid:
    """All points of a sweep."""

    name: str
    title: str
    axes: tuple[str, ...]
    points: tuple[SweepPoint, ...]


def load_grid(path: Path) -> Grid:
    """The sweep in a file, or one line that names the file, the key and what is wrong with it."""
    _, entries = read_toml(path)
    place_own_table(entries, path.parent)
    try:
        return read_grid(entries)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None


def read_grid(entries: Mapping[str, Any]) -> Grid:
    """The sweep that a file's tables describe."""
    try:
        stated = SweepFile.model_validate(entries)
    except ValidationError as error:
        raise ParameterError(str(complaint(error, deepest=True))) from None
    count = math.prod(map(len, stated.axes.values()))
    if count > _MOST:
        raise ParameterError(f"`axes` must give at most {_MOST:,} points; got {count:,}.")
    points = tuple(_point(stated, settings) for settings in grid(stated.axes))
    return Grid(stated.name, stated.title, tuple(stated.axes), points)


def _point(stated: SweepFile, settings: Mapping[str, Any]) -> SweepPoint:
    base = stated.model_dump(include={"data", "graph", "problem", "run", "method"})
    tables = place_settings(base, settings)
    curve = {**tables.pop("method"), **_DRAWN}
    try:
        figure = spec.Figure.model_validate(
            {"name": stated.name, "title": stated.title, "layout": "tradeoff", "curves": [curve], **tables}
        )
    except ValidationError as error:
        said = str(complaint(error, deepest=True)).replace("curves.0.", "method.")
        raise ParameterError(f"at {_name_settings(settings)}: {said}") from None
    return SweepPoint(settings, figure)


def _name_settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in settings.items()) or "the only point"
