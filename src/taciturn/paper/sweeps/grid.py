"""Read the TOML file of a sweep. The points of a sweep are all combinations of the values on its axes.

[data] [graph] [problem] [run]    as in the TOML file of a figure
[method]                          method, penalty, dual_step and noise, as in a curve of a figure
[axes]                            a setting and its values: "method.penalty.ratio" = [1.0, 1.02, 1.04]

The name of a setting is its path through nested tables. Point A beats point B if the loss and epsilon of A
are at most those of B, and at least one of them is smaller. The Pareto front consists of the points that no
other point beats. All points are checked before the first one runs. They run in any order, in this process or
on a cluster.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from ...core import checks
from ...core.errors import ParameterError
from ...core.toml import complaint, read_toml
from ...runtime.engine_selection import choose_for_jobs
from ..figures import spec
from ..figures.runner import settings
from ..results_store import fingerprint

_MOST = 100_000  # the largest number of points
# A file of a figure describes one run for each curve. A point is checked and run as such a file with one
# curve. The format requires a name, a label and a colour, although nothing is drawn.
_DRAWN = {"name": "point", "label": "point", "colour": "#000000"}


class SweepFile(spec.FigureTable):
    """The content of a sweep's file. `spec.Figure` checks the settings of each point later."""

    name: spec.FileStem
    title: str = ""
    data: dict[str, Any]
    graph: dict[str, Any]
    problem: dict[str, Any]
    run: dict[str, Any]
    method: dict[str, Any]
    axes: dict[str, list[Any]]


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One point: its values on the axes, and its run, described in the form of a figure with one curve."""

    settings: Mapping[str, Any]
    figure: spec.Figure

    @property
    def key(self) -> str:
        """A hash of everything that the numbers of this point depend on."""
        return fingerprint(settings(self.figure, self.figure.curves[0]))


@dataclass(frozen=True, eq=False)
class Grid:
    """All points of a sweep."""

    name: str
    title: str
    axes: tuple[str, ...]
    points: tuple[SweepPoint, ...]


@dataclass(frozen=True)
class SweepRow:
    """One point: its settings, the results of its run, and whether it is on the Pareto front."""

    settings: Mapping[str, Any]
    numbers: Mapping[str, Any]
    on_front: bool


@dataclass(frozen=True, eq=False)
class SweepResult:
    """A sweep and its results, one row per point, in the order of the points."""

    grid: Grid
    rows: tuple[SweepRow, ...]

    @property
    def front(self) -> list[SweepRow]:
        """The points of the Pareto front, in the order of their epsilon."""
        return sorted((row for row in self.rows if row.on_front), key=lambda row: row.numbers["epsilon"])


def load_grid(path: Path) -> Grid:
    """Read a sweep from a file. An error message names the file, the key and the mistake in one line."""
    _, entries = read_toml(path)
    spec.place_own_table(entries, path.parent)
    try:
        return read_grid(entries)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None


def read_grid(entries: Mapping[str, Any]) -> Grid:
    """The sweep that the tables of a file describe."""
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
        where = ", ".join(f"{name} = {value}" for name, value in settings.items()) or "the only point"
        raise ParameterError(f"at {where}: {said}") from None
    return SweepPoint(settings, figure)


def grid(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values on the axes. The value on the last axis changes fastest.

    >>> grid({"a": [1, 2], "b": ["x", "y"]})
    [{'a': 1, 'b': 'x'}, {'a': 1, 'b': 'y'}, {'a': 2, 'b': 'x'}, {'a': 2, 'b': 'y'}]
    """
    for name, values in axes.items():
        if not values:
            raise ParameterError(f"`axes`: {name} must have at least one value.")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def place_settings(table: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `table` in which each setting is at its path. The tables on the path must exist.

    >>> place_settings({"method": {"penalty": {"start": 0.5}}}, {"method.penalty.ratio": 1.04})
    {'method': {'penalty': {'start': 0.5, 'ratio': 1.04}}}
    """
    result = dict(table)
    for name, value in settings.items():
        *way, last = name.split(".")
        inner = result
        for part in way:
            if not isinstance(inner.get(part), Mapping):
                raise ParameterError(
                    f"`axes`: {name} must be a dotted key that leads through nested TOML tables; {part} is "
                    "not a TOML table."
                )
            inner[part] = dict(inner[part])
            inner = inner[part]
        inner[last] = value
    return result


def front(costs: ArrayLike, losses: ArrayLike) -> NDArray[np.bool_]:
    """A mask of the points on the Pareto front. A point with an infinite or NaN cost or loss is not on it.

    >>> front([1.0, 2.0, 3.0, 2.0], [0.5, 0.3, 0.3, 0.4]).tolist()
    [True, True, False, False]
    """
    cost, loss = np.asarray(costs, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    finite = np.flatnonzero(np.isfinite(cost) & np.isfinite(loss))
    order = finite[np.lexsort((loss[finite], cost[finite]))]
    c, x = cost[order], loss[order]
    least = np.minimum.accumulate(np.append(np.inf, x))  # least[k]: the least loss of the k cheapest points
    # the least loss among the points with a lower cost, and among those with at most the same cost
    cheaper, no_dearer = (least[np.searchsorted(c, c, side)] for side in ("left", "right"))
    on = np.zeros(cost.shape, dtype=bool)
    on[order] = (x < cheaper) & (x <= no_dearer)
    return on


def run_each(
    run: Callable[[Any], Any], items: Sequence[Any], *, engine: str = "local", address: str | None = None
) -> Iterator[tuple[int, Any]]:
    """(index, run(item)) for all items, in the order in which the runs finish.

    The engine "local" runs the items one after another in this process, "ray" runs them on a cluster. "auto"
    runs the first item in this process, measures its time, and chooses the engine for the other items.
    """
    checks.choice("engine", engine, ("local", "ray", "auto"))
    first = 0
    if engine == "auto" and items:
        clock = time.perf_counter()
        yield 0, run(items[0])
        first, engine = 1, choose_for_jobs(time.perf_counter() - clock, len(items) - 1)
    if engine == "ray":
        from ...runtime.ray.tasks import scatter

        for place, result in scatter(run, items[first:], address=address):
            yield first + place, result
    else:
        for place in range(first, len(items)):
            yield place, run(items[place])
