"""owner.toml, a file beside a job: where the rows are, the format of their files, and their budget.

It belongs to the owner of all tables of a job that `taciturn train` runs on one machine. A site of a
network has its own site.toml instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from ..core.errors import ParameterError
from ..core.toml import Facts
from .job_format import Text
from .toml_files import read_file

if TYPE_CHECKING:
    from ..data.tables.sql_tables import TableQuery
    from ..data.tables.table_files import CsvForm
    from ..privacy.ledger.budget import Budget

OWNER = "owner.toml"


class CsvFacts(Facts):
    """The format of the CSV files: `csv = {separator = ";", decimal = ",", encoding = "latin-1"}`."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        self.form()
        return self

    def form(self) -> CsvForm:
        """These settings in the form that the reader of tables takes."""
        from ..data.tables.table_files import CsvForm

        return CsvForm(self.separator, self.decimal, self.encoding)


class DatabaseFacts(Facts):
    """Rows in a database: `database = { url = "postgresql+psycopg://user@host/db", query = "SELECT ..." }`.

    Only the owner ever sees the URL and the query.
    """

    url: Text = Field(repr=False)
    query: Text = Field(repr=False)

    def source(self, folder: Path) -> TableQuery:
        """The query in the form that the reader of tables takes."""
        from ..data.tables.sql_tables import TableQuery

        return TableQuery(self.url, self.query, folder)


class SharedBudget(Facts):
    """`[budget]`: the file of a budget over several runs; `epsilon` and `delta` are for a new file."""

    ledger: Text
    epsilon: float | None = Field(default=None, gt=0)
    delta: float | None = Field(default=None, ge=0, lt=1)

    def open(self, folder: Path) -> Budget:
        """The budget in the file, whose path is relative to the folder of the job."""
        from ..privacy.ledger.budget import Budget

        return Budget(folder / self.ledger, self.epsilon, self.delta)


class RowsEntry(Facts):
    """The file with the rows of one site, relative to the folder of the owner's file; or a database."""

    data: Text | None = None
    csv: CsvFacts | None = None
    database: DatabaseFacts | None = None

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        check_source(self.data, self.csv, self.database)
        return self


def check_source(data: object, csv: CsvFacts | None, database: DatabaseFacts | None) -> None:
    """Check that the rows are in one place, and that CSV options are given for files only."""
    if (data is None) == (database is None):
        raise ValueError("give either `data` (a file) or `database`")
    if csv is not None and database is not None:
        raise ValueError("`csv` must be left out with a `database`")


def _as_table(entry: Any) -> Any:
    return {"data": entry} if isinstance(entry, str) else entry


class OwnerFile(Facts):
    """The keys of owner.toml.

    rows : for each site, by name, its file, or `{ data = "south.csv", csv = { separator = ";" } }`, or
        `{ database = { url = "...", query = "SELECT ..." } }`.
    csv : the format of the CSV files; a site may have different settings.
    budget : a file to which each run on these rows is charged, in full and in advance; see `taciturn.Budget`.
    """

    rows: dict[str, Annotated[RowsEntry, BeforeValidator(_as_table)]]
    csv: CsvFacts = Field(default_factory=CsvFacts)
    budget: SharedBudget | None = None


def read_owner(job: Path, names: list[Any]) -> OwnerFile:
    """Read the owner's file beside a job with the sites `names`; it must state where each site's rows are."""
    path = job.parent / OWNER
    if not path.exists():
        lines = ", ".join(f'{name} = "{name}.csv"' for name in names)
        raise ParameterError(
            f"{path}: is missing. It must name the file with the rows of each site in {job.name}: "
            f"rows = {{ {lines} }}."
        )
    found = read_file(path, OwnerFile)
    absent = [name for name in names if name not in found.rows]
    if absent:
        raise ParameterError(f"{path}: `rows.{absent[0]}` must be given: the job {job.name} has this site.")
    return found
