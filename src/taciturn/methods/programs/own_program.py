"""A user's own program: public code that asks for one sum of clipped vectors after another.

    class Mean(tt.Program):
        def steps(self, facts):  return [tt.Step("mean", length=facts.columns, bound=1.0)]
        def start(self):         return None
        def query(self, state):  return tt.Query(tt.expressions.columns())
        def advance(self, state, total):  return total.values
        def result(self, state): return state

The private half is an expression (`expressions.py`). taciturn computes the vector of each unit (a record or a
person), clips the vector to norm `bound`, divides it by the number n of units, rounds it to the grid and adds
up whole numbers. So replacing a unit moves a sum by at most 2 bound / n before rounding, whatever the program
asks.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core import checks
from ...core.errors import ParameterError
from ...core.types import Array
from ...kernels.row_functions import clipped
from ...objective.persons import Persons
from ...objective.regularizers import L2
from ...privacy.sums import ALIGNED, VECTORS, SumFacts
from ..base import Network
from ..sums.expression_json import measure, parts_of
from ..sums.expressions import Expression, Installed
from ..sums.program import PrivateHalf, ProgramPart, PublicHalf, SumPlan
from ..sums.several import Joinable
from ..sums.sums import Integers

MOST_STEPS, _MOST_NUMBERS, _WIDEST = 10_000, 10_000_000, 10_000_000
_MOST_WORK = 1e13  # the most numbers that all steps compute over all units: a run takes hours, not years
_BLOCK = 1 << 22  # how many numbers are computed at a time
_INSIDE = 1 - 2.0**-40  # vectors are clipped to this share of the bound, to leave room for rounding errors


class ProgramFacts(NamedTuple):
    """The facts that a program gets before it starts: the number of units, sites and columns."""

    units: int
    sites: int
    columns: int


@dataclass(frozen=True)
class Step:
    """One sum of a program.

    bound : the clipping bound on the norm of a unit's vector.
    share : the share of the budget mu^2 that this sum spends; only the ratios of the shares matter.
    aligned : whether the inner product of the vectors of any two units is at least 0, as with cells and outer
        products. Such a sum needs less noise.
    """

    name: str
    length: int
    bound: float
    share: float = 1.0
    aligned: bool = False

    def __post_init__(self) -> None:
        checks.whole("length", self.length, least=1)
        checks.positive("bound", self.bound)
        checks.positive("share", self.share)


@dataclass(frozen=True)
class Query:
    """The contribution of each unit to the next sum: an expression and its public parameters."""

    expression: Expression
    parameters: Mapping[str, Any] = field(default_factory=dict)


class Total(NamedTuple):
    """The release of a step: the mean over all units, and the standard deviation of its noise."""

    values: Array
    std: float


class Program(ABC):
    """The public half of a user's program, to be subclassed.

    The code must be deterministic, because every site runs it on its own, from totals alone.
    """

    @abstractmethod
    def steps(self, facts: ProgramFacts) -> Sequence[Step]:
        """All sums of the program, fixed before the first sum."""

    @abstractmethod
    def start(self) -> Any:
        """The state before the first sum."""

    @abstractmethod
    def query(self, state: Any) -> Query:
        """The next query."""

    @abstractmethod
    def advance(self, state: Any, total: Total) -> Any:
        """The state after one more sum."""

    @abstractmethod
    def result(self, state: Any) -> Any:
        """The result of the program."""

    private: Any = None
    """A static function of one row and the query's parameters, for `expressions.installed`; or None.

    The function is trusted code: clipping does not protect against a function that keeps state between rows.
    """


@dataclass(frozen=True, eq=False)
class ProgramState:
    """The state of a program after t sums, for each repeat. `totals` has all releases so far."""

    t: int
    inner: tuple[Any, ...]
    totals: Array


@dataclass(frozen=True, eq=False)
class ProgramHalf(PublicHalf):
    """A user's program as the public half of masked sums: it sees no rows, only totals.

    The vectors of a step are divided by the bound of the step, so that their norm is at most 1.
    """

    program: Program
    plan: tuple[Step, ...]
    columns: int
    noise: tuple[float, ...] = ()
    units: int = 1

    @property
    def dimension(self) -> int:
        """The total length of all sums."""
        return sum(step.length for step in self.plan)

    def start(self, repeats: int) -> ProgramState:
        inner = tuple(self.program.start() for _ in range(repeats))
        return ProgramState(0, inner, np.zeros((repeats, self.dimension)))

    def query(self, state: ProgramState) -> list[Query]:
        """The next query of each repeat. Raises if a query does not fit its step or needs too much work."""
        step, found = self.plan[state.t], []
        for inner in state.inner:
            query = self.program.query(inner)
            try:
                values = {name: np.array(value, dtype=np.float64) for name, value in query.parameters.items()}
                expression = query.expression
            except (AttributeError, TypeError, ValueError):
                wrong = f"`query` of step {step.name!r} must return a tt.Query whose parameters are numbers."
                raise ParameterError(wrong) from None
            parts_of(expression)
            shapes = {name: value.shape for name, value in values.items()}
            width = expression.width(self.columns, shapes)
            if width != step.length:
                raise ParameterError(
                    f"`length` of step {step.name!r} must be {width}, the width of its expression; "
                    f"got {step.length}."
                )
            wide, work = measure(expression, self.columns, shapes)
            if wide > _WIDEST:
                raise ParameterError(
                    f"`expression` of step {step.name!r} has a part with {wide:,} numbers for a row; "
                    f"at most {_WIDEST:,} are allowed."
                )
            if work > (most := max(_MOST_WORK / (self.units * len(self.plan)), 1000.0)):
                raise ParameterError(
                    f"`expression` of step {step.name!r} computes {work:,} numbers for a row; a program of "
                    f"{len(self.plan):,} steps over {self.units:,} units may compute at most {most:,.0f}."
                )
            if step.aligned and not expression.aligned:
                raise ParameterError(
                    f"`aligned` of step {step.name!r} must be False: with the expression of this step, the "
                    "vectors of two rows may have a negative inner product."
                )
            found.append(Query(expression, values))
        return found

    def advance(self, state: ProgramState, total: Array) -> ProgramState:
        step, std = self.plan[state.t], self.noise[state.t]
        first = sum(earlier.length for earlier in self.plan[: state.t])
        totals = state.totals.copy()
        totals[:, first : first + step.length] = total * step.bound
        rows = zip(state.inner, total, strict=True)
        inner = tuple(
            self.program.advance(one, Total(row * step.bound, std * step.bound)) for one, row in rows
        )
        return ProgramState(state.t + 1, inner, totals)

    def result(self, state: ProgramState) -> Array:
        return state.totals

    def replay(self, totals: Array) -> Any:
        """The result of the program after these totals, (dimension,)."""
        inner, first = self.program.start(), 0
        for step, std in zip(self.plan, self.noise, strict=True):
            values = totals[first : first + step.length]
            inner = self.program.advance(inner, Total(values, std * step.bound))
            first += step.length
        return self.program.result(inner)

    def private_half(self, rows: UnitRows, units: int) -> UnitVectors:
        bounds = {t: step.bound for t, step in enumerate(self.plan, start=1)}
        return UnitVectors(rows.by_person(), units, bounds, self.program.private)


@dataclass(frozen=True, eq=False)
class UnitRows:
    """The rows X of one site. If units are persons, also the person and the weight (`share`) of each row.

    The weight of a row is 1/m if its person has m rows at the site.
    """

    X: Array
    person: NDArray[np.int64] | None = None
    share: Array | None = None

    def take(self, chosen: NDArray[Any]) -> UnitRows:
        """Some of the rows."""
        person = None if self.person is None else self.person[chosen]
        share = None if self.share is None else self.share[chosen]
        return UnitRows(np.ascontiguousarray(self.X[chosen]), person, share)

    def by_person(self) -> UnitRows:
        """The rows sorted by person."""
        return self if self.person is None else self.take(np.argsort(self.person, kind="stable"))


@dataclass(frozen=True, eq=False)
class UnitVectors(PrivateHalf):
    """The private half: it clips every unit's vector, divides it by n and rounds it to whole grid steps."""

    rows: UnitRows
    units: int
    bounds: Mapping[int, float]
    installed: Callable[[Array, Mapping[str, Array]], Any] | None = None

    def integers(self, query: list[Query], facts: SumFacts) -> Integers:
        """The sum over this site's units, (repeats, length). A row adds zeros if its computation fails."""
        return np.stack([self._add_up(one, facts) for one in query])

    def _add_up(self, query: Query, facts: SumFacts) -> Integers:
        X, bound = self.rows.X, self.bounds[facts.t]
        total = np.zeros(facts.length, dtype=np.int64)
        shapes = {name: np.shape(value) for name, value in query.parameters.items()}
        step = max(1, _BLOCK // max(facts.length, measure(query.expression, X.shape[1], shapes)[0]))
        if self.rows.person is None:
            for first in range(0, len(X), step):
                vectors = self._vectors(query, X[first : first + step], bound)
                total += self._whole(vectors, facts)
            return total
        people, numbers = np.unique(self.rows.person, return_inverse=True)
        starts = np.append(np.flatnonzero(np.diff(numbers, prepend=-1)), len(X))
        with np.errstate(all="ignore"):
            if (found := query.expression.of_units(X, starts, query.parameters)) is not None:
                return self._whole(np.ascontiguousarray(found / bound), facts)
        sums = np.zeros((len(people), facts.length))
        for first in range(0, len(X), step):
            rows = slice(first, first + step)
            vectors = clipped(self._vectors(query, X[rows], bound), _INSIDE)
            share = np.ones(len(vectors)) if self.rows.share is None else self.rows.share[rows]
            np.add.at(sums, numbers[rows], vectors * share[:, None])
        return self._whole(sums, facts)

    def _vectors(self, query: Query, X: Array, bound: float) -> Array:
        """The vector of each row, in units of the bound; entries that overflow are infinite."""
        with np.errstate(all="ignore"):
            if self.installed is not None and isinstance(query.expression, Installed):
                found = row_by_row(self.installed, X, query.parameters, query.expression.length)
            else:
                found = query.expression.of(X, query.parameters)
            return np.ascontiguousarray(found / bound)

    def _whole(self, vectors: Array, facts: SumFacts) -> Integers:
        """The sum of vectors in grid steps; each vector is clipped to norm 1, divided by n and rounded."""
        vectors = clipped(vectors, _INSIDE)
        whole = np.rint(vectors / (self.units * facts.grid)).astype(np.int64)
        return np.asarray(whole.sum(axis=0))


def row_by_row(
    private: Callable[[Array, Mapping[str, Array]], Any],
    X: Array,
    parameters: Mapping[str, Array],
    length: int,
) -> Array:
    """The result of an installed function for every row; zeros if it fails or returns a wrong length."""
    found = np.zeros((len(X), length))
    for k, row in enumerate(X):
        with contextlib.suppress(Exception, SystemExit):  # an error could reveal facts about the row
            found[k] = np.asarray(private(row.copy(), parameters), dtype=np.float64).reshape(length)
    return found


@dataclass(frozen=True)
class OwnProgram(Joinable):
    """The method: one run of a program within (epsilon, delta).

    columns : the number of columns of a row, if it differs from the dimension of the network.
    """

    program: Program
    epsilon: float
    delta: float
    colluding: int | None = None
    columns: int | None = None

    def part(self, network: Network) -> ProgramPart:
        """The sums, for a run of their own or as one of several questions in a job."""
        units = network.units
        columns = network.dimension if self.columns is None else self.columns
        plan = check_steps(self.program.steps(ProgramFacts(units, network.total, columns)))
        whole = sum(step.share for step in plan)
        plans = [
            SumPlan(
                part=ALIGNED if step.aligned else VECTORS,
                length=step.length,
                sensitivity=(math.sqrt(2.0) if step.aligned else 2.0) / units,
                stray=0.0,
                largest=1.0,
                share=step.share / whole,
                whole=True,
            )
            for step in plan
        ]

        def half(sums: tuple[SumFacts, ...], sites: int) -> ProgramHalf:
            noise = tuple(entry.grid * entry.std * float(np.sqrt(sites)) for entry in sums)
            return ProgramHalf(self.program, plan, columns, noise, units)

        return ProgramPart(tuple(plans), half)


def check_steps(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps of a program, checked: at least one, and not too many."""
    plan = tuple(islice(steps, MOST_STEPS + 1))
    if not all(isinstance(step, Step) for step in plan):
        raise ParameterError("`steps` must contain tt.Step objects.")
    numbers = sum(step.length for step in plan)
    if not 1 <= len(plan) <= MOST_STEPS or numbers > _MOST_NUMBERS:
        raise ParameterError(
            f"`steps` must be 1 to {MOST_STEPS} sums of at most {_MOST_NUMBERS:,} numbers in all; "
            f"got {len(plan)} sums of {numbers:,} numbers."
        )
    return plan


@dataclass(frozen=True, eq=False)
class ProgramTable:
    """The rows of all sites for a program, with the attributes of a `Problem` that a run needs.

    samples : the number of records, or persons, of each site.
    dimension : the number of columns of a row.
    """

    sites: Sequence[Any]
    samples: NDArray[np.int64]
    dimension: int
    by_person: bool = False
    loss: Any = None
    C: float = 1.0
    regularization: float = 0.0
    regularizer: Any = field(default_factory=L2)

    @property
    def n(self) -> int:
        return len(self.sites)

    @property
    def persons(self) -> Persons | None:
        """The public number of persons, if the unit is a person; else None."""
        return Persons((), self.samples, int(self.samples.sum())) if self.by_person else None

    def site(self, i: int) -> Any:
        return self.sites[i]

    def require_unit_rows(self) -> None:
        """Accept all rows: a program clips the contribution of a row, not the row."""
