"""A job -> a fitted estimator: tables read and encoded by public facts, one fit across the sites."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from ..data.tables.encoder import BoundedEncoder
from ..estimators.base import PrivateLinearModel
from ..estimators.charging import LedgerFile
from ..estimators.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from ..estimators.model_file import Model
from ..estimators.regressor import PrivateHuberRegressor
from ..jobfile.job_rows import JobTables, make_encoder, read_labels, read_tables
from .training_job import TrainingJob

_NONE = " "  # no declared class is blank


@dataclass(frozen=True, eq=False, repr=False)
class TrainingRows:
    """The rows of all sites, encoded, with their targets and persons."""

    encoder: BoundedEncoder
    X: Array
    y: NDArray[Any]
    site: NDArray[np.str_]
    person: NDArray[np.str_] | None = None


def gather(job: TrainingJob, folder: Path) -> TrainingRows:
    """Read every site's table; nothing is learnt from it but the number of its rows."""
    tables = read_tables(job, job.files(folder), [*job.schema_.names, job.label.column])
    encoder = make_encoder(job, units=tables.units)
    X = encoder.transform(tables.columns)
    return TrainingRows(encoder, X, targets(job, tables), tables.site, tables.person)


def targets(job: TrainingJob, tables: JobTables) -> NDArray[Any]:
    """NaN, or an undeclared label, for a missing label: such a row counts as zeros."""
    y, known = read_labels(job.label, tables.columns[job.label.column])
    if job.label.told is None:
        return np.where(known, y, np.nan)
    return np.array([*job.label.told, _NONE])[np.where(known, y, -1)]


def fit(
    job: TrainingJob, rows: TrainingRows, ledger: LedgerFile | None = None, *, verbose: bool = False
) -> tuple[PrivateLinearModel, Model]:
    """The estimator, and the model to write; what is spent goes to the ledger first."""
    options: dict[str, Any] = {
        "epsilon": job.epsilon,
        "delta": job.delta,
        "large_delta": job.large_delta,
        "graph": job.network(),
        "data_norm": 1.0,
        "colluding": job.colluding,
        "fit_intercept": job.intercept,
        "C": "auto" if job.C is None else job.C,
        "regularization": "auto" if job.regularization is None else job.regularization,
        "rounds": job.rounds,
        "max_rounds": job.max_rounds,
        "noise": job.noise,
        "effort": job.effort,
        "ledger": ledger,
        "random_state": job.seed,
        "verbose": verbose,
    }
    model: Any
    loss, classes = job.loss, job.label.told
    if loss.name == "log-cosh":
        model = PrivateHuberRegressor(target_scale=job.label.scale, scale=loss.scale, **options)
    elif loss.name == "smooth-hinge":
        model = PrivateLinearSVC(classes=classes, smoothing=loss.h, **options)
    else:
        model = PrivateLogisticRegression(classes=classes, **options)
    model.fit(rows.X, rows.y, site=rows.site, person=rows.person)
    return model, Model.of(model, schema=rows.encoder, label=job.label.column)
