"""Sweeps: every combination of some settings, each run once, and the Pareto front.

A setting is named by its place in a table of tables: "method.penalty.ratio". Points are independent: they are
run in any order, in this process or on a cluster.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import checks
from ...core.errors import ParameterError
from ...runtime.engine_selection import choose_for_jobs

Point = dict[str, Any]


def grid(axes: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Every combination of the axes' values, the last axis changing fastest.

    >>> grid({"a": [1, 2], "b": ["x", "y"]})
    [{'a': 1, 'b': 'x'}, {'a': 1, 'b': 'y'}, {'a': 2, 'b': 'x'}, {'a': 2, 'b': 'y'}]
    """
    for name, values in axes.items():
        if not values:
            raise ParameterError(f"`axes`: {name} must have at least one value.")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def place_settings(table: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """`table` with each setting in its place; the tables on the way must be there.

    >>> place_settings({"method": {"penalty": {"start": 0.5}}}, {"method.penalty.ratio": 1.04})
    {'method': {'penalty': {'start': 0.5, 'ratio': 1.04}}}
    """
    result = dict(table)
    for name, value in settings.items():
        *way, last = name.split(".")
        inner = result
        for part in way:
            if not isinstance(inner.get(part), Mapping):
                raise ParameterError(f"`axes`: {name} must lead through tables; {part} is not one.")
            inner[part] = dict(inner[part])
            inner = inner[part]
        inner[last] = value
    return result


def front(costs: ArrayLike, losses: ArrayLike) -> NDArray[np.bool_]:
    """The Pareto front: points that no other beats in one number without losing in the other.

    Points without a finite cost are never on it.

    >>> front([1.0, 2.0, 3.0, 2.0], [0.5, 0.3, 0.3, 0.4]).tolist()
    [True, True, False, False]
    """
    cost, loss = np.asarray(costs, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    on = np.zeros(cost.shape, dtype=bool)
    best = np.inf
    finite = np.flatnonzero(np.isfinite(cost) & np.isfinite(loss))
    order = finite[np.lexsort((loss[finite], cost[finite]))]
    for _, group in itertools.groupby(order, key=lambda k: float(cost[k])):
        equals = list(group)
        least = float(loss[equals[0]])
        if least < best:
            on[[k for k in equals if loss[k] == least]] = True
            best = least
    return on


def run_each(
    run: Callable[[Any], Any], items: Sequence[Any], *, engine: str = "local", address: str | None = None
) -> Iterator[tuple[int, Any]]:
    """(place, run(item)) for all items, as they are done: here one after another, or over a cluster.

    "auto" runs the first one here, takes its time, and chooses for the others. Nothing is run twice.
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
