"""This site's rows: read once, bounded by public facts, and never quoted by an error."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MissingExtra, SiteError
from .job import Job, Label
from .site import Site

Array = NDArray[np.float64]

READERS = (".npz", ".csv", ".parquet")
_LONGEST = 1 + 1e-12  # a row divided by its own norm may come out this much longer than 1


def load_rows(site: Site) -> tuple[Array, Array]:
    """(X, y): as many rows as the job says, each of norm at most 1."""
    path, job = site.path(site.file.data), site.job
    if path.suffix not in READERS:
        raise SiteError(f"{path}: `data` must end in {', '.join(READERS)}.")
    try:
        X, y = _from_arrays(path) if path.suffix == ".npz" else _from_table(path, job)
    except OSError as error:
        raise SiteError(f"{path}: cannot be read ({error.strerror or 'not a file of that kind'}).") from error
    if len(y) != len(X):
        raise SiteError(f"{path}: X and y must have as many rows; got {len(X)} and {len(y)}.")
    if len(X) != site.samples:
        raise SiteError(f"{path}: the job says {site.samples} rows for {site.name}; the file has {len(X)}.")
    if X.shape[1] != job.dimension:
        raise SiteError(f"{path}: the job has {job.dimension} features; the file has {X.shape[1]}.")
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise SiteError(f"{path}: X and y must be finite numbers; replace an invalid row by zeros, keep it.")
    if np.sqrt(np.einsum("ij,ij->i", X, X)).max() > _LONGEST:
        raise SiteError(f"{path}: every row must have norm at most 1; scale X with public bounds.")
    return X, y


def _from_arrays(path: Path) -> tuple[Array, Array]:
    """X and y of a NumPy archive; objects, which would have to be unpickled, are refused."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file):
            archive = np.load(path, allow_pickle=False)
            with archive:
                X, y = archive["X"].astype(np.float64), archive["y"].astype(np.float64)
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
        raise SiteError(f"{path}: must be an .npz with the arrays of numbers X and y.") from error
    if X.ndim != 2 or y.ndim != 1:
        raise SiteError(f"{path}: X must have two dimensions and y one; got {X.ndim} and {y.ndim}.")
    return X, y


def _from_table(path: Path, job: Job) -> tuple[Array, Array]:
    """The columns of the job's schema, encoded by public facts alone; a row without a label says nothing."""
    schema, label = job.public_schema, job.label
    if schema is None or label is None:
        raise SiteError(
            f"{path}: a table needs `schema` and `label` in the job; with `features` use an .npz."
        )
    table = read_table(path, (*schema.names, label.column))
    from ...data.encoder import BoundedEncoder

    X = BoundedEncoder(schema, data_norm=1.0, intercept=job.intercept).transform(table)
    y, known = _labels(label, table[label.column])
    X[~known] = 0.0
    return X, y


def read_table(path: Path, needed: Sequence[str]) -> dict[str, Any]:
    """The columns of a .csv or .parquet file, with at least those that are needed."""
    table = _from_csv(path) if path.suffix == ".csv" else _from_parquet(path)
    absent = [name for name in needed if name not in table]
    if absent:
        raise SiteError(f"{path}: lacks the column {absent[0]!r}.")
    return table


def _labels(label: Label, values: Any) -> tuple[Array, NDArray[np.bool_]]:
    """y, and which of its entries are known; the others are set to one that a row of zeros makes harmless."""
    from ...data.columns import parse_column
    from ...data.schema import Category, Number

    if label.positive is None:
        numbers = parse_column(Number(label.column, -1e300, 1e300), values)
        return np.nan_to_num(numbers), ~np.isnan(numbers)
    places = parse_column(Category(label.column, (label.positive,)), values)
    return np.where(places == 0, 1.0, -1.0), places >= -1


def _from_csv(path: Path) -> dict[str, list[str | None]]:
    """Columns by name; a row of another length is a row of missing values."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = csv.reader(file)
        names = [name.strip() for name in next(lines, [])]
        rows: list[list[Any]] = [
            row if len(row) == len(names) else [None] * len(names) for row in lines if row
        ]
    if len(set(names)) < len(names) or not names:
        raise SiteError(f"{path}: the first line must hold the names of the columns, each once.")
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


def _from_parquet(path: Path) -> dict[str, Any]:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "tables") from error
    try:
        table = parquet.read_table(path)
    except ArrowInvalid as error:
        raise SiteError(f"{path}: is no Parquet file.") from error
    return {name: table[name].to_pylist() for name in table.column_names}
