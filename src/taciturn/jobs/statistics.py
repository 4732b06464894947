"""A job's tables, scored or described with noise: what `taciturn evaluate` and `taciturn describe` do."""

from __future__ import annotations

from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

from ..core.errors import ParameterError
from ..estimators.model_file import load_model
from ..jobfile.job_rows import JobTables, read_tables
from ..questions.shipped.description import PrivateDescription
from ..questions.shipped.score import PrivateScore
from ..statistics.descriptions import private_description
from ..statistics.scores import private_score
from .training import targets
from .training_job import TrainingJob, read_job


def evaluate_job(
    model: str | PathLike[str],
    path: str | PathLike[str],
    *,
    epsilon: float,
    bins: int = 20,
    public: bool = False,
) -> PrivateScore:
    """Score a model on the tables of a job; delta, colluding, person and budget are those of the job.

    `public` states that a model without a certificate was made without these tables.
    """
    job, folder = read_job(Path(path)), Path(path).parent
    if job.label.told is None:
        raise ParameterError("`label.classes` must be given in the job: only classifiers are scored.")
    loaded = load_model(Path(model))
    tables = read_tables(job, job.files(folder), [*loaded[0].schema.names, job.label.column])
    y = targets(job, tables)
    with nullcontext() if job.budget is None else job.budget.open(folder):
        return private_score(
            loaded, tables.columns, y, epsilon=epsilon, bins=bins, public=public, **_request(job, tables)
        )


def describe_job(path: str | PathLike[str], *, epsilon: float, bins: int = 20) -> PrivateDescription:
    """Describe the columns of a job's schema; delta, colluding, person and budget are those of the job."""
    job, folder = read_job(Path(path)), Path(path).parent
    tables = read_tables(job, job.files(folder), job.schema_.names)
    with nullcontext() if job.budget is None else job.budget.open(folder):
        return private_description(
            tables.columns, job.schema_, epsilon=epsilon, bins=bins, **_request(job, tables)
        )


def _request(job: TrainingJob, tables: JobTables) -> dict[str, Any]:
    return {
        "delta": job.delta or 1e-5,
        "site": tables.site,
        "person": tables.person,
        "colluding": job.colluding,
        "large_delta": job.large_delta,
        "random_state": job.seed,
    }
