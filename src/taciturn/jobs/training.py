"""A job -> a fitted estimator: tables read and encoded by public facts, one fit across the sites."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.tables.columns import parse_column
from ..data.tables.encoder import BoundedEncoder
from ..data.tables.fields import Category, Number
from ..data.tables.files import read_table
from ..errors import DataError
from ..estimators.base import PrivateLinearModel
from ..estimators.charging import LedgerFile
from ..estimators.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from ..estimators.model_file import Model
from ..estimators.regressor import PrivateHuberRegressor
from ..types import Array
from .training_job import TrainingJob

_NONE = " "  # no declared class is blank


@dataclass(frozen=True, eq=False, repr=False)
class TrainingRows:
    """The rows of all sites, encoded, with their targets and whose they are."""

    X: Array
    y: NDArray[Any]
    site: NDArray[np.str_]
    person: NDArray[np.str_] | None = None


def gather(job: TrainingJob, folder: Path) -> TrainingRows:
    """Read every site's table; nothing is learnt from it but the number of its rows."""
    encoder = make_encoder(job)
    parts = []
    for site in job.sites:
        form = (site.csv or job.csv).form()
        whose = [] if job.person is None else [job.person]
        table = read_table(folder / site.data, [*job.schema_.names, job.label.column, *whose], form)
        y = read_targets(job, table[job.label.column])
        ids = person_ids(table[job.person], folder / site.data) if job.person else np.full(len(y), "")
        parts.append((encoder.transform(table), y, np.full(len(y), site.name), ids))
    X, y, names, persons = (np.concatenate(part) for part in zip(*parts, strict=True))
    return TrainingRows(X, y, names, persons if job.person else None)


def make_encoder(job: TrainingJob) -> BoundedEncoder:
    """How a record of the job becomes a row."""
    return BoundedEncoder(job.schema_, data_norm=1.0, missing=job.missing)


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
    if job.loss == "log-cosh":
        model = PrivateHuberRegressor(target_scale=job.label.scale, **options)
    else:
        kind = PrivateLogisticRegression if job.loss == "logistic" else PrivateLinearSVC
        model = kind(classes=job.label.classes, **options)
    model.fit(rows.X, rows.y, site=rows.site, person=rows.person)
    return model, Model.of(model, schema=make_encoder(job), label=job.label.column)


def person_ids(values: Any, file: Path) -> NDArray[np.str_]:
    """Whose row it is, as text; no row may be without."""
    ids = ["" if value is None or value != value else str(value).strip() for value in values]
    if not all(ids):
        raise DataError(
            f"{file}: some rows do not say whose they are; each needs an id in the `person` column."
        )
    return np.array(ids)


def read_targets(job: TrainingJob, values: Any) -> NDArray[Any]:
    """The targets; NaN, or a label that nobody declared, where there is none: such a row counts as zeros."""
    if job.label.classes is None:
        return parse_column(Number(job.label.column, -1e300, 1e300), values)
    places = parse_column(Category(job.label.column, tuple(job.label.classes)), values)
    return np.array([*job.label.classes, _NONE])[np.where(places < 0, -1, places)]
