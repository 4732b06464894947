"""This site's rows: read once, bounded by public facts, and never quoted by an error."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, SiteError
from ...types import Array
from .job import NetworkJob, NetworkLabel
from .site import Site

READERS = (".npz", ".csv", ".parquet")
_LONGEST = 1 + 1e-12  # a row divided by its own norm may come out this much longer than 1


def load_rows(site: Site) -> tuple[Array, Array]:
    """(X, y): as many rows as the job says, each of norm at most 1."""
    path, job = site.path(site.file.data), site.job
    if path.suffix not in READERS:
        raise SiteError(f"{path}: `data` must end in {', '.join(READERS)}.")
    try:
        X, y = read_arrays(path, "X", "y") if path.suffix == ".npz" else _from_table(path, job)
    except OSError as error:
        raise SiteError(f"{path}: cannot be read ({error.strerror or 'not a file of that kind'}).") from error
    if X.ndim != 2 or y.ndim != 1:
        raise SiteError(f"{path}: X must have two dimensions and y one; got {X.ndim} and {y.ndim}.")
    if len(y) != len(X):
        raise SiteError(f"{path}: X and y must have as many rows; got {len(X)} and {len(y)}.")
    if job.person is None and len(X) != site.samples:
        raise SiteError(f"{path}: the job says {site.samples} rows for {site.name}; the file has {len(X)}.")
    if X.shape[1] != job.dimension:
        raise SiteError(f"{path}: the job has dimension {job.dimension}; the file has {X.shape[1]}.")
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise SiteError(f"{path}: X and y must be finite numbers; replace an invalid row by zeros, keep it.")
    if np.sqrt(np.einsum("ij,ij->i", X, X)).max() > _LONGEST:
        raise SiteError(f"{path}: every row must have norm at most 1; scale X with public bounds.")
    return X, y


def load_weights(site: Site) -> Array | None:
    """For every row 1/m, m being how many rows its person has here; None in a job without persons."""
    path, person = site.path(site.file.data), site.job.person
    if person is None:
        return None
    ids = _ids(path, person)
    everyone, number, rows = np.unique(ids, return_inverse=True, return_counts=True)
    if len(everyone) != site.samples:
        raise SiteError(
            f"{path}: the job says {site.samples} persons for {site.name}; the file has {len(everyone)}."
        )
    return np.asarray(1.0 / rows[number])


def _ids(path: Path, person: str) -> NDArray[np.str_]:
    """Whose row it is, as text; no row may be without."""
    if path.suffix == ".npz":
        return read_arrays(path, person, kinds="iuU")[0].astype(str)
    values = read_columns(path, (person,))[person]
    ids = ["" if value is None or value != value else str(value).strip() for value in values]
    if not all(ids):
        raise SiteError(f"{path}: some rows do not say whose they are; each needs an id in `{person}`.")
    return np.array(ids)


def read_arrays(path: Path, *names: str, kinds: str | None = None) -> list[NDArray[Any]]:
    """Some arrays of a NumPy archive; objects, which would have to be unpickled, are refused.

    As floats, or of one of these kinds of NumPy types.
    """
    try:
        with path.open("rb") as file, zipfile.ZipFile(file):
            archive = np.load(path, allow_pickle=False)
            with archive:
                if kinds is None:
                    return [archive[name].astype(np.float64) for name in names]
                found = [np.asarray(archive[name]) for name in names]
                if any(array.ndim != 1 or array.dtype.kind not in kinds for array in found):
                    raise ValueError("kind")
                return found
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
        what = "numbers" if kinds is None else "whole numbers or texts, one per row"
        raise SiteError(f"{path}: must be an .npz with arrays of {what}: {', '.join(names)}.") from error


def _from_table(path: Path, job: NetworkJob) -> tuple[Array, Array]:
    """The columns of the job's schema, encoded by public facts alone; a row without a label says nothing."""
    schema, label = job.public_schema, job.label
    if schema is None or label is None:
        raise SiteError(
            f"{path}: a table needs `schema` and `label` in the job; with `dimension` use an .npz."
        )
    from ...data.tables.encoder import BoundedEncoder

    table = read_columns(path, (*schema.names, label.column))
    y, known = _labels(label, table[label.column])
    if job.ball is not None:
        X = BoundedEncoder(schema, data_norm=1.0).transform(table)
        return job.ball.rows(X, known & X.any(axis=1)), y
    X = BoundedEncoder(schema, data_norm=1.0, intercept=job.intercept).transform(table)
    X[~known] = 0.0
    return X, y


def read_columns(path: Path, needed: Sequence[str]) -> Mapping[str, Sequence[Any]]:
    """The columns of a .csv or .parquet file, with at least those that are needed."""
    from ...data.tables import files

    try:
        return files.read_table(path, needed)
    except DataError as error:
        raise SiteError(str(error)) from error


def _labels(label: NetworkLabel, values: Any) -> tuple[Array, NDArray[np.bool_]]:
    """y, and which of its entries are known; the others are set to one that a row of zeros makes harmless."""
    from ...data.tables.columns import parse_column
    from ...data.tables.fields import Category, Number

    if label.classes is not None:
        places = parse_column(Category(label.column, label.classes), values)
        return np.maximum(places, 0).astype(np.float64), places >= 0
    if label.positive is None:
        numbers = parse_column(Number(label.column, -1e300, 1e300), values)
        return np.nan_to_num(numbers), ~np.isnan(numbers)
    places = parse_column(Category(label.column, (label.positive,)), values)
    return np.where(places == 0, 1.0, -1.0), places >= -1
