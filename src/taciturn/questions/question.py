"""Question: the base class of questions. A question asks for a statistic that sites compute together.

A `Question` contains the checked keys of one question in a job file; Python functions use the same class. Its
function `method` returns the method of the run, which computes noisy sums over the rows of all sites. `rows`
turns the rows of a site into the input of that method. All sites see the totals of the sums, and `answer`
computes the answer from these totals. Only `rows` sees rows, and it runs at the site that has them.

A unit is what the privacy guarantee protects: one record, or one person with any number of rows.
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
    """The public facts about the tables of all sites.

    schema : the columns with their ranges and categories. label : the column that a model predicts.
    folder : the folder of the job's files.
    width : the number of columns, if the rows are arrays of numbers without a schema.
    by_person : True if a unit is a person, who may have any number of rows; False if a unit is a record.
    """

    schema: Schema | None = None
    label: Label | None = None
    sites: tuple[str, ...] = ()
    folder: Path = Path()
    width: int | None = None
    by_person: bool = False

    def fields(self, names: Sequence[str] | None, key: str) -> tuple[Field, ...]:
        """The named columns of the schema; all columns if `names` is None. Errors name `key`."""
        if self.schema is None:
            raise ParameterError(f"`schema` must be given: `{key}` is about the columns of a table.")
        known = {field.name: field for field in self.schema}
        wrong = [name for name in names or () if name not in known]
        if wrong:
            raise ParameterError(f"`{key}` must name columns of the schema; got {wrong[0]!r}.")
        if len(set(names or ())) < len(names or ()):
            raise ParameterError(f"`{key}` must name each column once; got {list(names or ())}.")
        return tuple(known[name] for name in (known if names is None else names))


@dataclass(frozen=True, eq=False)
class SiteTable:
    """The rows of one site, or of all sites if one process holds them: named columns, or an array of numbers.

    person : the id of the person of every row; None if the unit is a record.
    site : the number of the site; or an array with the number of each row's site.
    """

    columns: Mapping[str, Any]
    rows: int
    person: NDArray[Any] | None = None
    site: int | NDArray[np.int64] = 0
    array: Array | None = None

    def parsed(self, fields: Sequence[Field]) -> dict[str, Array]:
        """The cells of these columns as numbers. A missing or unreadable cell is NaN (in a category, < 0)."""
        plain = [replace(one, fill=None) if isinstance(one, Number) else one for one in fields]
        return dict(parse(Schema(tuple(plain)), self.columns)) if plain else {}

    def unit_rows(self, X: Array) -> UnitRows:
        """The rows `X`. If the unit is a person, the weight of a row is 1 / (rows of its person)."""
        X, counts = np.ascontiguousarray(X, dtype=np.float64), self.rows_of_person()
        if self.person is None or counts is None:
            return UnitRows(X)
        return UnitRows(X, np.unique(self.person, return_inverse=True)[1], 1.0 / counts)

    def rows_of_person(self) -> NDArray[np.int64] | None:
        """For each row, how many rows its person has at this site; None if the unit is a record."""
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
    """The noisy totals (`values`) that the sites released for one question, and public facts about them.

    program : the part of the method that chose the sums. It uses public numbers only.
    sums : the length, the bound and the noise of each sum.
    units : the public number of records (or persons).
    """

    program: Any
    sums: tuple[SumFacts, ...]
    sites: int
    units: int
    values: Array


class Question(Facts):
    """A question with the keys of its kind.

    share : the weight of the question in a job with several questions. The job's mu^2 is divided in
        proportion to these weights, where mu measures the budget as in Gaussian differential privacy.
    """

    kind: ClassVar[str] = ""
    by_other_schema: ClassVar[bool] = False  # whether cells are read with a schema other than the job's
    share: float = Key(default=1.0, gt=0, le=1e6)

    @property
    def names_sites(self) -> bool:
        """Whether the answer contains figures about the rows of a single site."""
        return False

    @property
    def digest(self) -> str | None:
        """The SHA-256 of the installed program that the question runs; None if it runs no program."""
        return None

    @abstractmethod
    def reads(self, public: PublicTable) -> tuple[str, ...]:
        """The columns of the schema that the question needs. Data owners see their names before a run."""

    @abstractmethod
    def method(self, public: PublicTable, spending: Spending) -> OwnRounds:
        """The method that computes the sums; its `prepare(network)` fixes their bounds and noise."""

    @abstractmethod
    def rows(self, public: PublicTable, table: SiteTable) -> Any:
        """The rows, as the method needs them. Only this function, and the code that it calls, sees rows."""

    @abstractmethod
    def answer(self, public: PublicTable, totals: Totals) -> PrivateAnswer:
        """The answer from the released totals."""

    def marks(self, public: PublicTable) -> tuple[str, ...]:
        """The marks of this question: short warnings for the certificate."""
        return ()


@dataclass(frozen=True, eq=False, repr=False)
class NoisyCounts:
    """Released tables of counts, the standard deviation of the noise of a count, and the number of units."""

    tables: tuple[Array, ...]
    sigma: float
    units: int


class CountsQuestion(Question):
    """A question that is answered from tables of counts, which are released together as one noisy sum.

    Every row is counted in exactly one cell of each table.
    """

    @abstractmethod
    def lengths(self, public: PublicTable) -> tuple[int, ...]:
        """The number of cells of each table."""

    @abstractmethod
    def cells(self, public: PublicTable, table: SiteTable) -> NDArray[np.integer[Any]]:
        """For every row, the number of its cell in each table, as an array (rows, tables)."""

    @abstractmethod
    def estimate(self, public: PublicTable, found: NoisyCounts) -> PrivateAnswer:
        """The answer, estimated from the noisy counts."""

    def method(self, public: PublicTable, spending: Spending) -> Counts:
        lengths = self.lengths(public)
        if sum(lengths) > _MOST_CELLS:
            raise ParameterError(
                f"`kind` {self.kind!r} must have tables with at most {_MOST_CELLS:,} cells; "
                f"got {sum(lengths):,}. Ask for fewer `bins`, columns or groups."
            )
        return Counts(lengths, *spending)

    def rows(self, public: PublicTable, table: SiteTable) -> SiteCells:
        starts = np.concatenate([[0], np.cumsum(self.lengths(public))[:-1]]).astype(np.int32)
        cells = self.cells(public, table).astype(np.int32, copy=False)
        cells += starts  # in place, because a table may fill half of the memory
        return SiteCells(cells, table.rows_of_person())

    def answer(self, public: PublicTable, totals: Totals) -> PrivateAnswer:
        (entry,) = totals.sums
        sigma = entry.grid * entry.std * math.sqrt(totals.sites) * totals.program.scale
        tables = tuple(np.split(totals.values, np.cumsum(self.lengths(public))[:-1]))
        return self.estimate(public, NoisyCounts(tables, sigma, totals.units))
