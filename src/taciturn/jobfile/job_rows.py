"""Read the tables of a job, and make the encoder that turns records into rows. No error quotes a row."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.canonical import digest
from ..core.errors import DataError, ParameterError
from ..core.files import DAMAGED_NPZ

if TYPE_CHECKING:
    from ..data.tables.column_types import Category, Number
    from ..data.tables.encoder import BoundedEncoder
    from ..data.tables.sql_tables import TableQuery
    from ..data.tables.table_files import Columns, CsvForm
    from .job_format import Job, JobSite, Label

_ANY = 1e300  # a bound that no target exceeds


@dataclass(frozen=True)
class TableFile:
    """Where the rows of one site are: a database query, or a file (with its format if it is CSV)."""

    site: JobSite
    path: Path | TableQuery
    csv: CsvForm | None = None

    @property
    def fingerprint(self) -> str:
        """A hash of the file's path or the database's address; it is the same for all jobs on these rows."""
        if isinstance(self.path, Path):
            return digest(["file", str(self.path.resolve())])
        return self.path.fingerprint

    def read(self, needed: Sequence[str], numbers: Sequence[str] = ()) -> Columns:
        """Read the columns `needed`; all must exist. In a CSV file, the columns `numbers` become floats."""
        from ..data.tables.table_files import check_columns, read_table

        if isinstance(self.path, Path):
            return read_table(self.path, needed, self.csv, numbers)
        return check_columns(self.path.columns, needed, str(self.path))

    def column_names(self) -> tuple[str, ...]:
        """The names of all columns of a table file; empty for a file of arrays and for a query."""
        from ..data.tables.table_files import SUFFIXES, column_names

        if isinstance(self.path, Path) and self.path.suffix.lower() in SUFFIXES:
            return column_names(self.path, self.csv)
        return ()


@dataclass(frozen=True, eq=False, repr=False)
class JobTables:
    """The tables of some sites, one after another: the columns, and the site and person of every row."""

    columns: dict[str, Any]
    site: NDArray[np.str_]
    person: NDArray[np.str_] | None

    def __len__(self) -> int:
        return len(self.site)

    @property
    def units(self) -> int:
        """The number of records, or of persons if every row has a person's id."""
        return len(self) if self.person is None else len(np.unique(self.person))


def read_tables(
    job: Job, files: Sequence[TableFile], names: Sequence[str], numbers: Sequence[str] = ()
) -> JobTables:
    """Read the columns `names` of the sites' tables, and check each site's number of rows or persons.

    numbers : the columns to read as numbers instead of text.
    """
    columns: dict[str, Any] = {name: [] for name in names}
    sites: list[str] = []
    persons: list[NDArray[np.str_]] = []
    numbers = [name for name in numbers if name != job.person]
    for file in files:
        table = file.read([*names, *([] if job.person is None else [job.person])], numbers)
        if len(files) == 1:
            columns = {name: table[name] for name in names}
        else:
            for name in names:
                columns[name].extend(table[name])
        units = rows = len(table[names[0]])
        sites.extend([file.site.name] * rows)
        if job.person is not None:
            persons.append(_person_ids(table[job.person], file.path, job.person))
            units = len(np.unique(persons[-1]))
        check_samples(job, file.site, units, file.path)
    return JobTables(columns, np.array(sites), np.concatenate(persons) if persons else None)


def check_samples(job: Job, site: JobSite, found: int, path: Path | TableQuery) -> None:
    """Raise if the number of rows or persons that the job states for the site differs from `found`."""
    if site.samples not in (None, found):
        what = "rows" if job.person is None else "persons"
        where = "file has" if isinstance(path, Path) else "query returns"
        raise DataError(
            f"{path}: the job says {site.samples} {what} for {site.name}; the {where} {found}. "
            "Restore the table that was counted, or correct `samples` in the job."
        )


def read_labels(label: Label, values: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """(targets, known): the target of each row (a number, or the index of a class), and whether it is known.

    If the label of a row cannot be used (for example, it is missing), `known` is False and the target is 0.
    """
    from ..data.tables.column_parsing import OTHER, parse_column

    found = parse_column(label_type(label), values)
    if label.told is None:
        return np.nan_to_num(found), ~np.isnan(found)
    if label.positive is not None:
        return (found == 0).astype(np.int64), found >= OTHER
    return np.maximum(found, 0), found >= 0


def label_type(label: Label) -> Category | Number:
    """The allowed values of the label's column."""
    from ..data.tables.column_types import Category, Number

    if label.told is None:
        return Number(label.column, -_ANY, _ANY)
    return Category(label.column, label.classes or (str(label.positive),))


def _person_ids(values: Any, path: Path | TableQuery, column: str) -> NDArray[np.str_]:
    """The person's id of every row, as text; every row must have one."""
    ids = ["" if value is None or value != value else str(value).strip() for value in values]
    if not all(ids):
        raise DataError(f"{path}: the person's id is missing in some rows; each row needs one in `{column}`.")
    return np.array(ids)


def make_encoder(job: Job, *, intercept: bool = False, units: int | None = None) -> BoundedEncoder:
    """The encoder that turns a record of the job into a row of norm at most 1.

    units : the number of records, or persons, of all sites together. It is used if the job does not state the
        `samples` of every site.
    """
    from ..data.tables.encoder import BoundedEncoder

    options: dict[str, Any] = {"data_norm": 1.0, "intercept": intercept, "missing": job.missing}
    if job.encoding is None:
        return BoundedEncoder(job.schema_, **options)
    curves, surfaces = chosen_map(job, units)
    options["missing"] = job.missing or "indicator"
    return BoundedEncoder(job.schema_, **options, curves=curves, surfaces=surfaces, seed=job.encoding.seed)


def chosen_map(job: Job, units: int | None) -> tuple[int, int]:
    """The numbers (curves, surfaces) of `[encoding]`; "auto" is computed. `units` is as in `make_encoder`."""
    from ..data.features.blind_choice import schema_map

    told = [site.samples for site in job.sites]
    known = sum(count for count in told if count is not None) if None not in told else units
    given = (job.encoding.curves, job.encoding.surfaces) if job.encoding is not None else (0, 0)
    if "auto" not in given:
        return given  # type: ignore[return-value]
    if job.epsilon is None or known is None:
        what = "epsilon" if job.epsilon is None else "samples"
        raise ParameterError(
            "`encoding.curves` and `encoding.surfaces` must be numbers, such as 9 and 0, in a job without "
            f'`{what}`: "auto" is computed from `{what}`.'
        )
    auto = schema_map(job.schema_, known, job.epsilon, job.delta)
    return tuple(b if a == "auto" else a for a, b in zip(given, auto, strict=True))  # type: ignore[return-value]


def encoding_facts(encoder: BoundedEncoder) -> dict[str, Any]:
    """The parameters of an encoder in the form of a model file, without the schema."""
    from ..data.model_file import Encoding

    return Encoding.of(encoder).model_dump(exclude_none=True)


def read_arrays(path: Path, *names: str, kinds: str | None = None) -> list[NDArray[Any]]:
    """Read the arrays `names` of an .npz file, as floats.

    kinds : if given, the arrays are not converted. Each must have one dimension and one of these NumPy kinds.

    Arrays of objects are refused, because reading them would unpickle data.
    """
    from ..data.tables.table_files import unchanged

    try:
        with unchanged(path), path.open("rb") as file, zipfile.ZipFile(file):
            archive = np.load(path, allow_pickle=False)
            with archive:
                if kinds is None:
                    return [archive[name].astype(np.float64) for name in names]
                found = [np.asarray(archive[name]) for name in names]
                if any(array.ndim != 1 or array.dtype.kind not in kinds for array in found):
                    raise ValueError("kind")  # becomes a `DataError` below
                return found
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or 'not an .npz file'}).") from error
    except DAMAGED_NPZ as error:
        what = "numbers" if kinds is None else "whole numbers or texts, one per row"
        raise DataError(f"{path} must be an .npz file with arrays of {what}: {', '.join(names)}.") from error
