"""The seam of a question: from keys to a method, from rows to a private half, from totals to an answer.

A `Question` is the keys of one kind in a job file, checked; Python, files and sites use the same class. It is
public: it sees a row only in `rows`, which runs where the rows lie.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Key

from ..core.errors import ParameterError
from ..core.toml import Facts
from ..core.types import Array
from ..data.tables.column_parsing import parse
from ..data.tables.column_types import Field, Number
from ..data.tables.schema import Schema
from ..jobfile.job_format import Label
from ..methods.base import OwnRounds
from ..methods.programs.counts import Counts, SiteCells
from ..methods.programs.own_program import UnitRows
from ..privacy.sums import SumFacts
from .answer import PrivateAnswer

_MOST_CELLS = 10_000_000


@dataclass(frozen=True, eq=False)
class PublicTable:
    """The public facts about the tables: schema, label, names of the sites, folder of the job's files.

    by_person : whether a unit is a person, with any number of rows, in place of a record.
    """

    schema: Schema | None = None
    label: Label | None = None
    sites: tuple[str, ...] = ()
    folder: Path = Path()
    width: int | None = None
    by_person: bool = False

    def fields(self, names: Sequence[str] | None, key: str) -> tuple[Field, ...]:
        """These columns of the schema, all by default; `key` is the key of the question that names them."""
        if self.schema is None:
            raise ParameterError(f"`schema` must be given: `{key}` is about the columns of a table.")
        known = {field.name: field for field in self.schema}
        wrong = [name for name in names or () if name not in known]
        if wrong:
            raise ParameterError(f"`{key}` must name columns of the schema; got {wrong[0]!r}.")
        if len(set(names or ())) < len(names or ()):
            raise ParameterError(f"`{key}` must name each column once.")
        return tuple(known[name] for name in (known if names is None else names))


@dataclass(frozen=True, eq=False)
class SiteTable:
    """The rows of one site: its columns, or an array of numbers, and whose they are.

    site : the site's number; an array says it for every row.
    """

    columns: Mapping[str, Any]
    rows: int
    person: NDArray[Any] | None = None
    site: int | NDArray[np.int64] = 0
    array: Array | None = None

    def parsed(self, fields: Sequence[Field]) -> dict[str, Array]:
        """These columns as numbers; NaN, or -1 for a category, where a cell cannot be read."""
        plain = [replace(one, fill=None) if isinstance(one, Number) else one for one in fields]
        return dict(parse(Schema(tuple(plain)), self.columns)) if plain else {}

    def unit_rows(self, X: Array) -> UnitRows:
        """Rows of numbers, and whose they are."""
        X, counts = np.ascontiguousarray(X, dtype=np.float64), self.rows_of_person()
        if self.person is None or counts is None:
            return UnitRows(X)
        return UnitRows(X, np.unique(self.person, return_inverse=True)[1], 1.0 / counts)

    def rows_of_person(self) -> NDArray[np.int64] | None:
        """How many rows the person of each row has here; None where a row is a unit."""
        if self.person is None:
            return None
        _, number, rows = np.unique(self.person, return_inverse=True, return_counts=True)
        return np.asarray(rows[number], dtype=np.int64)


class Spending(NamedTuple):
    """The budget of the whole job, and the assumed number of colluding sites."""

    epsilon: float
    delta: float
    colluding: int | None = None


@dataclass(frozen=True, eq=False)
class Totals:
    """The release for one question: its public half, its sums and their totals.

    units : the public number of records, or of persons.
    """

    program: Any
    sums: tuple[SumFacts, ...]
    sites: int
    units: int
    values: Array


class Question(Facts):
    """A question with the keys of its kind. `share` weighs it against the other questions of a job."""

    kind: ClassVar[str] = ""
    by_other_schema: ClassVar[bool] = False  # whether it reads cells by another schema than the job's
    share: float = Key(default=1.0, gt=0, le=1e6)

    @property
    def names_sites(self) -> bool:
        """Whether the answer has figures about a single site's rows."""
        return False

    @property
    def digest(self) -> str | None:
        """The SHA-256 of the installed program that it runs; None for what taciturn ships."""
        return None

    @abstractmethod
    def reads(self, public: PublicTable) -> tuple[str, ...]:
        """The columns that it needs, each checked to be there; what an owner is shown before approval."""

    @abstractmethod
    def method(self, public: PublicTable, spending: Spending) -> OwnRounds:
        """The program over masked sums; `method.prepare(network)` fixes every number of it."""

    @abstractmethod
    def rows(self, public: PublicTable, table: SiteTable) -> Any:
        """The rows of the private half: the only function that sees rows."""

    @abstractmethod
    def answer(self, public: PublicTable, totals: Totals) -> PrivateAnswer:
        """The answer from the released totals."""

    def marks(self, public: PublicTable) -> tuple[str, ...]:
        """Notes about this question for the certificate."""
        return ()


@dataclass(frozen=True, eq=False, repr=False)
class NoisyCounts:
    """Released counts: those of every table, the spread of their noise, and the public number of units."""

    tables: tuple[Array, ...]
    sigma: float
    units: int


class CountsQuestion(Question):
    """A question that one sum of counts answers: every unit is in one cell of each table."""

    @abstractmethod
    def lengths(self, public: PublicTable) -> tuple[int, ...]:
        """The number of cells of each table."""

    @abstractmethod
    def cells(self, public: PublicTable, table: SiteTable) -> NDArray[np.integer[Any]]:
        """The cell of every row in every table, (rows, tables)."""

    @abstractmethod
    def estimate(self, public: PublicTable, found: NoisyCounts) -> PrivateAnswer:
        """The answer from the counts."""

    def method(self, public: PublicTable, spending: Spending) -> Counts:
        lengths = self.lengths(public)
        if sum(lengths) > _MOST_CELLS:
            raise ParameterError(
                f"`kind` {self.kind!r} must ask for at most {_MOST_CELLS:,} cells; got {sum(lengths):,}. "
                "Ask for fewer `bins`, columns or groups."
            )
        return Counts(lengths, *spending)

    def rows(self, public: PublicTable, table: SiteTable) -> SiteCells:
        starts = np.concatenate([[0], np.cumsum(self.lengths(public))[:-1]]).astype(np.int32)
        cells = self.cells(public, table).astype(np.int32, copy=False)
        cells += starts  # in place: a table may fill half the memory
        return SiteCells(cells, table.rows_of_person())

    def answer(self, public: PublicTable, totals: Totals) -> PrivateAnswer:
        (entry,) = totals.sums
        sigma = entry.grid * entry.std * math.sqrt(totals.sites) * totals.program.scale
        tables = tuple(np.split(totals.values, np.cumsum(self.lengths(public))[:-1]))
        return self.estimate(public, NoisyCounts(tables, sigma, totals.units))
