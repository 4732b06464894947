"""Schedules: pure functions of the round t = 1, 2, ..., for penalties, dual steps and noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .core import checks
from .core.errors import ParameterError


@runtime_checkable
class Schedule(Protocol):
    """A positive number for every round. A schedule is public, and it is fixed before the run."""

    def __call__(self, t: int) -> float:
        """Return the value in round t = 1, 2, ..."""
        ...

    @property
    def bounded(self) -> bool:
        """Whether the values of all rounds stay below one finite bound."""
        ...


@dataclass(frozen=True)
class Constant:
    """s(t) = value

    >>> Constant(0.5)(7)
    0.5
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", checks.positive("value", self.value))

    def __call__(self, t: int) -> float:
        return self.value

    @property
    def bounded(self) -> bool:
        return True


@dataclass(frozen=True)
class Geometric:
    """s(t) = min(start * ratio**(t - 1), cap)

    If ratio > 1 and there is no cap, s(t) grows without bound. The method `MADMM` may then stall before it
    reaches the optimum.

    >>> Geometric(0.5, 2.0)(3)
    2.0
    >>> Geometric(0.5, 2.0, cap=1.5)(3)
    1.5
    """

    start: float
    ratio: float = 1.0
    cap: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", checks.positive("start", self.start))
        object.__setattr__(self, "ratio", checks.positive("ratio", self.ratio))
        if self.cap is not None:
            object.__setattr__(self, "cap", checks.positive("cap", self.cap))
            if self.cap < self.start:
                raise ParameterError(f"`cap` must be at least `start` = {self.start:g}; got {self.cap:g}.")

    def __call__(self, t: int) -> float:
        try:
            value = self.start * self.ratio ** (t - 1)
        except OverflowError:
            value = math.inf
        return value if self.cap is None else min(value, self.cap)

    @property
    def bounded(self) -> bool:
        return self.ratio <= 1 or self.cap is not None


@dataclass(frozen=True, init=False)
class Table:
    """s(t) = values[t - 1]; after the end of the table, s(t) is the last value.

    >>> Table([0.5, 0.6])(1), Table([0.5, 0.6])(9)
    (0.5, 0.6)
    """

    values: tuple[float, ...]

    def __init__(self, values: Sequence[float]) -> None:
        if not isinstance(values, Sequence | np.ndarray):
            raise ParameterError(f"`values` must be a list of numbers; got {type(values).__name__}.")
        if len(values) == 0:
            raise ParameterError("`values` must contain at least one number; it is empty.")
        entries = tuple(checks.positive(f"values[{k}]", v) for k, v in enumerate(values))
        object.__setattr__(self, "values", entries)

    def __call__(self, t: int) -> float:
        return self.values[min(t, len(self.values)) - 1]

    @property
    def bounded(self) -> bool:
        return True


SCHEDULES: dict[str, Any] = {"constant": Constant, "geometric": Geometric, "table": Table}
"""The classes of schedules, by the names that JSON and TOML files use."""

ScheduleLike = float | Schedule
"""A schedule, or a number that holds in all rounds."""

PerSite = ScheduleLike | Sequence[ScheduleLike]
"""One schedule for all sites, or a list with one schedule for each site."""


def as_schedule(name: str, spec: Any) -> Schedule:
    """Return `spec` itself if it is a schedule; a number becomes a `Constant`."""
    if isinstance(spec, Schedule):
        return spec
    return Constant(checks.positive(name, spec))


def per_site(name: str, spec: Any, sites: int) -> tuple[Schedule, ...]:
    """One schedule per site. `spec` is a number or a schedule for all sites, or a list with one per site."""
    if isinstance(spec, Sequence | np.ndarray) and not isinstance(spec, str | bytes):
        if len(spec) != sites:
            raise ParameterError(
                f"`{name}` must have one entry for each of the {sites} sites; got {len(spec)}."
            )
        return tuple(as_schedule(f"{name}[{i}]", entry) for i, entry in enumerate(spec))
    return (as_schedule(name, spec),) * sites


def tabulate(name: str, schedules: Sequence[Schedule], rounds: int) -> NDArray[np.float64]:
    """An array (sites, rounds) of the values of all schedules. Each value must be finite and above 0."""
    rows: dict[int, NDArray[np.float64]] = {}
    for schedule in schedules:
        if id(schedule) not in rows:
            rows[id(schedule)] = np.array([schedule(t) for t in range(1, rounds + 1)], dtype=np.float64)
    table = np.stack([rows[id(schedule)] for schedule in schedules])
    bad = ~(np.isfinite(table) & (table > 0))
    if bad.any():
        site, t = np.argwhere(bad)[0]
        raise ParameterError(
            f"`{name}` must stay finite and above 0; got {table[site, t]:g} at t={t + 1} for site {site}."
        )
    return table


def to_dict(schedule: Schedule) -> float | dict[str, Any]:
    """A schedule as JSON and TOML files write it: a number, or a table that names the kind of the schedule.

    >>> to_dict(Constant(0.5)), to_dict(Geometric(0.5, 1.04))
    (0.5, {'kind': 'geometric', 'start': 0.5, 'ratio': 1.04})
    """
    if isinstance(schedule, Constant):
        return schedule.value
    kind = next((name for name, made in SCHEDULES.items() if isinstance(schedule, made)), None)
    if kind is None:
        raise ParameterError(
            f"a schedule of type {type(schedule).__name__} cannot be written as JSON; use a `Table`."
        )
    given = {name: value for name, value in vars(schedule).items() if value is not None}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    return {"kind": kind, **plain}


def from_dict(entry: Any) -> Schedule:
    """The schedule that an entry of a JSON or TOML file describes, in the form that `to_dict` writes.

    >>> from_dict(0.5), from_dict({"kind": "geometric", "start": 0.5, "ratio": 1.04, "cap": 2.0})
    (Constant(value=0.5), Geometric(start=0.5, ratio=1.04, cap=2.0))
    """
    if not isinstance(entry, Mapping):
        return as_schedule("value", entry)
    given = dict(entry)
    kind = checks.choice("kind", given.pop("kind", None), tuple(SCHEDULES))
    known = {field.name: field.default is MISSING for field in fields(SCHEDULES[kind])}
    strange = sorted(set(given) - set(known))
    lacking = [name for name, needed in known.items() if needed and name not in given]
    if strange or lacking:
        said = f"does not accept these keys: {strange}" if strange else f"needs these keys: {lacking}"
        raise ParameterError(f"a {kind} schedule {said}.")
    schedule: Schedule = SCHEDULES[kind](**given)
    return schedule


def trim_repeats(name: str, values: float | Sequence[float]) -> tuple[float, ...]:
    """The values as a tuple of positive numbers; repetitions of the last number are left out.

    >>> trim_repeats("penalty", [0.5, 0.6, 0.6])
    (0.5, 0.6)
    """
    try:
        table = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise ParameterError(f"`{name}` must be a number, or a list of one number per round.") from None
    if table.ndim != 1 or table.size == 0:
        raise ParameterError(
            f"`{name}` must be a number, or a list of one number per round; got shape {table.shape}."
        )
    bad = ~((table >= checks.LEAST) & (table <= checks.MOST))
    if bad.any():
        t = int(np.argmax(bad))
        raise ParameterError(
            f"`{name}` must stay between {checks.LEAST:g} and {checks.MOST:g}; got {table[t]:g} at t={t + 1}."
        )
    changes = np.flatnonzero(table[1:] != table[:-1])
    return tuple(table[: changes[-1] + 2 if changes.size else 1].tolist())
