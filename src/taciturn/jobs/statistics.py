"""A job's tables, scored or described with noise: what `taciturn evaluate` and `taciturn describe` do."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..data.tables.files import read_table
from ..errors import ParameterError
from ..estimators.model_file import load_model
from ..statistics.descriptions import PrivateDescription, private_description
from ..statistics.scores import PrivateScore, private_score
from .training import person_ids, read_targets
from .training_job import TrainingJob, read_job


@dataclass(frozen=True, eq=False, repr=False)
class JobTables:
    """The tables of all sites of a job below each other."""

    columns: dict[str, list[Any]]
    site: Any
    person: Any


def evaluate_job(
    model: str | PathLike[str], path: str | PathLike[str], *, epsilon: float, bins: int = 20
) -> PrivateScore:
    """Score a model on the tables of a job; delta, colluding, person and budget are those of the job."""
    job, folder = read_job(Path(path)), Path(path).parent
    if job.label.classes is None:
        raise ParameterError("`label.classes` must be given in the job: only classifiers are scored.")
    loaded = load_model(Path(model))
    tables = _read(job, folder, [*loaded[0].schema.names, job.label.column])
    y = read_targets(job, tables.columns.pop(job.label.column))
    with nullcontext() if job.budget is None else job.budget.open(folder):
        return private_score(loaded, tables.columns, y, epsilon=epsilon, bins=bins, **_wishes(job, tables))


def describe_job(path: str | PathLike[str], *, epsilon: float, bins: int = 20) -> PrivateDescription:
    """Describe the columns of a job's schema; delta, colluding, person and budget are those of the job."""
    job, folder = read_job(Path(path)), Path(path).parent
    tables = _read(job, folder, list(job.schema_.names))
    with nullcontext() if job.budget is None else job.budget.open(folder):
        return private_description(
            tables.columns, job.schema_, epsilon=epsilon, bins=bins, **_wishes(job, tables)
        )


def _wishes(job: TrainingJob, tables: JobTables) -> dict[str, Any]:
    return {
        "delta": job.delta or 1e-5,
        "site": tables.site,
        "person": tables.person,
        "colluding": job.colluding,
        "large_delta": job.large_delta,
        "random_state": job.seed,
    }


def _read(job: TrainingJob, folder: Path, names: list[str]) -> JobTables:
    whose = [] if job.person is None else [job.person]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    sites: list[str] = []
    persons: list[Any] = []
    for site in job.sites:
        table = read_table(folder / site.data, [*names, *whose], (site.csv or job.csv).form())
        for name in names:
            columns[name].extend(table[name])
        rows = len(table[names[0]])
        sites.extend([site.name] * rows)
        if job.person is not None:
            persons.extend(person_ids(table[job.person], folder / site.data))
    return JobTables(columns, np.array(sites), np.array(persons) if job.person else None)
