"""Read this site's rows, and bound them by public facts. No error message quotes a row."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np

from ...core.errors import SiteError
from ...core.types import Array
from ...data.tables.table_files import unchanged
from ...jobfile.job_rows import check_samples, make_encoder, read_arrays, read_labels, read_tables
from ...jobfile.toml_files import about_files
from ...questions.question import SiteTable
from .site import Site

READERS = (".npz", ".csv", ".parquet")
_LONGEST = 1 + 1e-12  # a row that was divided by its norm may have this norm, because of rounding


@about_files
def load_rows(site: Site) -> tuple[Array, Array]:
    """(X, y): rows of norm at most 1 and their labels. Without persons, the job states their number."""
    path, job = site.rows.path, site.job
    if isinstance(path, Path) and path.suffix not in READERS:
        raise SiteError(f"{path}: `data` must end in {', '.join(READERS)}.")
    if site.file.csv is not None and path.suffix != ".csv":
        raise SiteError(f"{path}: `csv` must be left out of site.toml: the file is not CSV.")
    X, y = read_arrays(_array_file(site), "X", "y") if path.suffix == ".npz" else _from_table(site)
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
    return X, y


@about_files
def load_table(site: Site) -> SiteTable:
    """The columns that the questions need, or the array X; the job states the number of rows or persons."""
    path, job = site.rows.path, site.job
    if isinstance(path, Path) and path.suffix not in READERS:
        raise SiteError(f"{path}: `data` must end in {', '.join(READERS)}.")
    if job.table is None:
        (X,) = read_arrays(_array_file(site), "X")
        if X.ndim != 2 or X.shape[1] != job.width or job.person is not None:
            raise SiteError(f"{path}: X must have {job.width} columns, and the job must not have `person`.")
        check_samples(job, site.rows.site, len(X), path)
        return SiteTable({}, len(X), None, site.number, X)
    tables = read_tables(job, [site.rows], job.asking.reads, job.asking.numbers)
    return SiteTable(tables.columns, len(tables), tables.person, site.number)


@about_files
def load_weighted_rows(site: Site) -> tuple[Array, Array, Array | None]:
    """(X, y, weights): all from the same version of the file."""
    path = site.rows.path
    with unchanged(path) if isinstance(path, Path) else nullcontext():
        return *load_rows(site), load_weights(site)


@about_files
def load_weights(site: Site) -> Array | None:
    """The weight of every row: 1/m, if the row's person has m rows; None in a job without persons."""
    path, person = site.rows.path, site.job.person
    if person is None:
        return None
    if path.suffix == ".npz":
        ids = read_arrays(_array_file(site), person, kinds="iuU")[0].astype(str)
    else:
        ids = np.asarray(read_tables(site.job, [site.rows], [person]).person)
    everyone, number, rows = np.unique(ids, return_inverse=True, return_counts=True)
    check_samples(site.job, site.rows.site, len(everyone), path)
    return np.asarray(1.0 / rows[number])


def _array_file(site: Site) -> Path:
    """The file with the arrays of a job without a schema."""
    if not isinstance(site.rows.path, Path):
        raise SiteError("`database`: a job with `dimension` needs arrays; use an .npz file in `data`.")
    return site.rows.path


def _from_table(site: Site) -> tuple[Array, Array]:
    """(X, y) from a table, encoded by public facts alone; a row without a known label becomes zeros."""
    job = site.job
    if job.label is None:
        raise SiteError(
            f"{site.rows.path}: a table needs `schema` and `label` in the job; `dimension` needs an .npz."
        )
    columns = read_tables(job, [site.rows], [*job.schema_.names, job.label.column]).columns
    y, known = read_labels(job.label, columns[job.label.column])
    if job.loss.kind != "regression" and not job.several:
        y = np.where(y > 0, 1.0, -1.0)
    if job.ball is not None:
        X = make_encoder(job).transform(columns)
        return job.ball.rows(X, known & X.any(axis=1)), y.astype(np.float64)
    X = make_encoder(job, intercept=job.intercept).transform(columns)
    X[~known] = 0.0
    return X, y.astype(np.float64)
