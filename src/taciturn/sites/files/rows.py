"""Read and check this site's rows. Tables are encoded with public facts only. No error quotes a row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import SiteError
from ...core.types import Array
from ...data.tables.table_files import unchanged
from ...jobfile.job_rows import check_samples, make_encoder, read_arrays, read_labels, read_tables
from ...jobfile.toml_files import about_files
from ...questions.question import SiteTable
from .site import Site

if TYPE_CHECKING:
    from ...data.tables.sql_tables import TableQuery

READERS = (".npz", ".csv", ".parquet")
_LONGEST = 1 + 1e-12  # a row that was divided by its norm may have this norm, because of rounding


def load_rows(site: Site) -> tuple[Array, Array]:
    """(X, y): rows of norm at most 1 and their labels."""
    return load_weighted_rows(site)[:2]


@about_files
def load_weighted_rows(site: Site) -> tuple[Array, Array, Array | None]:
    """(X, y, weights): rows of norm at most 1, their labels, and 1/m for each row of a person with m rows.

    If the job protects single rows, the weights are None. The job fixes the number of rows or persons.
    """
    path, job = _path(site), site.job
    if site.file.csv is not None and path.suffix != ".csv":
        raise SiteError(f"{path}: `csv` must be left out of site.toml: the file is not CSV.")
    X, y, ids = _from_arrays(site) if path.suffix == ".npz" else _from_table(site)
    if X.ndim != 2 or y.ndim != 1:
        raise SiteError(f"{path}: X must have two dimensions and y one; got {X.ndim} and {y.ndim}.")
    if len(y) != len(X):
        raise SiteError(f"{path}: X and y must have the same number of rows; got {len(X)} and {len(y)}.")
    if job.person is None:
        check_samples(job, site.rows.site, len(X), path)
    if X.shape[1] != job.dimension:
        raise SiteError(f"{path}: the job has dimension {job.dimension}; X has {X.shape[1]} columns.")
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise SiteError(
            f"{path}: X and y must be finite numbers; replace an invalid row by zeros instead of dropping it."
        )
    if np.sqrt(np.einsum("ij,ij->i", X, X)).max() > _LONGEST:
        raise SiteError(f"{path}: every row must have norm at most 1; scale X with public bounds.")
    if ids is None:
        return X, y, None
    if len(ids) != len(X):
        raise SiteError(f"{path}: `{job.person}` must have one id per row; got {len(ids)} for {len(X)} rows.")
    everyone, number, rows = np.unique(ids, return_inverse=True, return_counts=True)
    check_samples(job, site.rows.site, len(everyone), path)
    return X, y, np.asarray(1.0 / rows[number])


@about_files
def load_table(site: Site) -> SiteTable:
    """The rows of this site, for a job that asks questions and trains no model.

    They have the columns that the questions need, or are the array X. The job states how many rows or persons
    there must be.
    """
    path, job = _path(site), site.job
    if job.table is None:
        (X,) = read_arrays(_array_file(site), "X")
        if X.ndim != 2 or X.shape[1] != job.width or job.person is not None:
            raise SiteError(
                f"{path}: X must have shape (rows, {job.width}); got {X.shape}. With `person`, the rows must "
                "be a table."
            )
        check_samples(job, site.rows.site, len(X), path)
        return SiteTable({}, len(X), None, site.number, X)
    tables = read_tables(job, [site.rows], job.asking.reads, job.asking.numbers)
    return SiteTable(tables.columns, len(tables), tables.person, site.number)


def _path(site: Site) -> Path | TableQuery:
    """The file or the query with the rows; a file must have a known suffix."""
    path = site.rows.path
    if isinstance(path, Path) and path.suffix not in READERS:
        raise SiteError(f"{path}: `data` must end in {', '.join(READERS)}.")
    return path


def _from_arrays(site: Site) -> tuple[Array, Array, Any]:
    """(X, y, ids) from arrays: the rows, their labels and, in a job with persons, the person of every row."""
    path, person = _array_file(site), site.job.person
    with unchanged(path):
        X, y = read_arrays(path, "X", "y")
        return X, y, None if person is None else read_arrays(path, person, kinds="iuU")[0].astype(str)


def _array_file(site: Site) -> Path:
    """The file with the arrays of a job without a schema."""
    if not isinstance(site.rows.path, Path):
        raise SiteError(
            "`database` must be left out, because the job states `dimension`; use an .npz file in `data`."
        )
    return site.rows.path


def _from_table(site: Site) -> tuple[Array, Array, Any]:
    """(X, y, ids) from a table, encoded with public facts only; a row without a known label becomes zeros."""
    job = site.job
    if job.label is None:
        raise SiteError(
            f"{site.rows.path}: for a table, the job must have `schema` and `label`; for an .npz file, it "
            "must have `dimension`."
        )
    tables = read_tables(job, [site.rows], [*job.schema_.names, job.label.column])
    columns, ids = tables.columns, tables.person
    y, known = read_labels(job.label, columns[job.label.column])
    if job.loss.kind != "regression" and not job.several:
        y = np.where(y > 0, 1.0, -1.0)
    if job.ball is not None:
        X = make_encoder(job).transform(columns)
        return job.ball.rows(X, known & X.any(axis=1)), y.astype(np.float64), ids
    X = make_encoder(job, intercept=job.intercept).transform(columns)
    X[~known] = 0.0
    return X, y.astype(np.float64), ids
