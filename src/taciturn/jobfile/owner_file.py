"""The file owner.toml: it states where the rows of a job are, the format of their files, and their budget.

The owner of the rows writes this file, and puts it in the folder of the job. It is for jobs that run on one
machine, with `taciturn train` or `taciturn ask`. In a network, each site has a site.toml instead.
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
        """The same settings as a `CsvForm`, which the functions that read tables use."""
        from ..data.tables.table_files import CsvForm

        return CsvForm(self.separator, self.decimal, self.encoding)


class DatabaseFacts(Facts):
    """Rows in a database: `database = { url = "postgresql+psycopg://user@host/db", query = "SELECT ..." }`.

    The URL and the query are private to the owner, so `repr` leaves them out.
    """

    url: Text = Field(repr=False)
    query: Text = Field(repr=False)

    def source(self, folder: Path) -> TableQuery:
        """The same query as a `TableQuery`, which reads the table."""
        from ..data.tables.sql_tables import TableQuery

        return TableQuery(self.url, self.query, folder)


class SharedBudget(Facts):
    """`[budget]`: the file of a budget that several runs share. `epsilon` is needed to create the file."""

    ledger: Text
    epsilon: float | None = Field(default=None, gt=0)
    delta: float | None = Field(default=None, ge=0, lt=1)

    def open(self, folder: Path) -> Budget:
        """Open the budget. The path `ledger` is relative to `folder`, the folder of the job."""
        from ..privacy.ledger.budget import Budget

        return Budget(folder / self.ledger, self.epsilon, self.delta)


class RowsEntry(Facts):
    """Where a site's rows are: the file `data`, relative to the folder of owner.toml, or a database."""

    data: Text | None = None
    csv: CsvFacts | None = None
    database: DatabaseFacts | None = None

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        check_source(self.data, self.csv, self.database)
        if self.csv is not None and not str(self.data).lower().endswith(".csv"):
            raise ValueError(f"`csv` must be left out: {self.data} is not a CSV file")
        return self


def check_source(data: object, csv: CsvFacts | None, database: DatabaseFacts | None) -> None:
    """Check that either a file or a database is given, and that `csv` is given for a file only."""
    if (data is None) == (database is None):
        raise ValueError("give either `data` (a file) or `database`")
    if csv is not None and database is not None:
        raise ValueError("`csv` is for files; leave it out if the rows are in a `database`")


def _as_table(entry: Any) -> Any:
    return {"data": entry} if isinstance(entry, str) else entry


class OwnerFile(Facts):
    """The keys of owner.toml.

    rows : one key for each site. Its value is the path of the site's file, or a table such as
        `{ data = "south.csv", csv = { separator = ";" } }` or
        `{ database = { url = "...", query = "SELECT ..." } }`.
    csv : the format of the CSV files of all sites whose entry in `rows` has no `csv`.
    budget : the budget that all runs on these rows share. Each run is charged before it starts; see
        `taciturn.Budget`.
    """

    rows: dict[str, Annotated[RowsEntry, BeforeValidator(_as_table)]]
    csv: CsvFacts = Field(default_factory=CsvFacts)
    budget: SharedBudget | None = None


def read_owner(job: Path, names: list[Any]) -> OwnerFile:
    """Read owner.toml in the folder of the file `job`. It must give the rows of every site in `names`."""
    path = job.parent / OWNER
    if not path.exists():
        lines = ", ".join(f'{name} = "{name}.csv"' for name in names)
        raise ParameterError(
            f"{path}: this file is missing. It must name the file with the rows of each site in {job.name}: "
            f"rows = {{ {lines} }}."
        )
    found = read_file(path, OwnerFile)
    absent = [name for name in names if name not in found.rows]
    if absent:
        raise ParameterError(f"{path}: `rows.{absent[0]}` must be given: {job.name} lists this site.")
    return found
