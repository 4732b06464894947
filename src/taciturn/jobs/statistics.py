"""Uses of a job other than training: noisy scores, descriptions and answers, and a check of its tables.

Scores and descriptions use the job's keys delta (1e-5 if it is 0), large_delta, colluding, person and seed.
The result of the check has no noise, so only the owner of the rows may see it. The check spends no budget and
writes no file.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from ..core.errors import ParameterError
from ..core.files import write_whole
from ..data.tables.cell_counts import count_column
from ..estimators.model_file import load_model
from ..jobfile.job_format import SEVERAL
from ..jobfile.job_rows import JobTables, label_type, read_labels, read_tables
from ..questions.answer import PrivateAnswer
from ..questions.asking import Asking
from ..questions.kinds import read_questions
from ..questions.question import PublicTable, Spending
from ..questions.shipped.description import PrivateDescription
from ..questions.shipped.score import PrivateScore
from ..report import write
from ..statistics.counting import CountWishes, run_asking
from ..statistics.descriptions import private_description
from ..statistics.scores import private_score
from ..statistics.table_check import CheckedColumn, TableCheck, examine
from .job_reports import asked_report
from .run_folder import CERTIFICATE, REPORT, RESULT, write_answers
from .train_job import targets
from .training_job import OwnedJob, TrainingJob, read_asked, read_job


def evaluate_job(
    model: str | PathLike[str],
    path: str | PathLike[str],
    *,
    epsilon: float,
    bins: int = 20,
    public: bool = False,
) -> PrivateScore:
    """Score a model on the tables of a job, within the budget of the tables' owner.

    public : True declares that the model was made without these tables. The certificate of the model is then
        not checked.
    """
    job, folder = read_job(Path(path)), Path(path).parent
    if job.label.told is None:
        raise ParameterError(
            "`label` of the job must have `classes` or `positive`: only a classifier can be scored."
        )
    loaded = load_model(Path(model))
    tables = read_tables(job, job.files(folder), [*loaded[0].schema.names, job.label.column])
    y = targets(job.label, tables)
    with job.spending(folder):
        return private_score(
            loaded, tables.columns, y, epsilon=epsilon, bins=bins, public=public, **_request(job, tables)
        )


def describe_job(path: str | PathLike[str], *, epsilon: float, bins: int = 20) -> PrivateDescription:
    """Describe the columns of a job's schema, within the budget of the tables' owner."""
    job, folder = read_job(Path(path)), Path(path).parent
    tables = read_tables(job, job.files(folder), job.schema_.names)
    with job.spending(folder):
        return private_description(
            tables.columns, job.schema_, epsilon=epsilon, bins=bins, **_request(job, tables)
        )


def _request(job: OwnedJob, tables: JobTables) -> dict[str, Any]:
    return {
        "delta": job.delta or 1e-5,
        "site": tables.site,
        "person": tables.person,
        "colluding": job.colluding,
        "large_delta": job.large_delta,
        "random_state": job.seed,
    }


def ask_job(path: Path, out: Path | None = None) -> tuple[list[PrivateAnswer], list[Path]]:
    """Answer the questions of a job. Return the answers, and the paths of all written files.

    The files are in the folder `out`; by default, in the folder `answers` next to the job file.
    """
    job, folder = read_asked(path), path.parent
    out = folder / "answers" if out is None else out
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ParameterError(f"`--out` must be a new or empty folder; {out} is not.")
    questions = read_questions(job.questions, several=job.kind == SEVERAL)
    schema = None if job.table is None else job.schema_
    public = PublicTable(
        schema, job.label, tuple(sorted(job.names)), folder, by_person=job.person is not None
    )
    asking = Asking(questions, public, Spending(job.epsilon, job.delta, job.colluding))
    tables = read_tables(job, job.files(folder), asking.reads)
    wishes = CountWishes(job.epsilon, **_request(job, tables) | {"delta": job.delta})
    out.mkdir(parents=True, exist_ok=True)  # this may fail, so it comes before any cost
    with job.spending(folder):
        found, totals = run_asking(asking, tables.columns, len(tables), wishes, job.name)
    about = {"simulated": job.simulated, "run": {"job": job.name, "sites": list(job.names)}}
    result = asking.document(found, totals, about)
    facts = [  # written first: the answers can be computed again from the totals
        write_whole(out / RESULT, json.dumps(result, indent=1, allow_nan=False) + "\n"),
        write_whole(out / CERTIFICATE, found[0].certificate.to_json()),
    ]
    written = write_answers(out, found, [one.kind for one in questions])
    report = asked_report(job, asking, found[0].certificate, written, out.name)
    return found, [*written, *facts, write(report, out / REPORT)]


def check_tables(job: TrainingJob, folder: Path) -> dict[str, TableCheck]:
    """Check the table of every site. The keys of the result are the sites' names, in the job's order."""
    names = [*job.schema_.names, job.label.column]
    tables = {file.site.name: read_tables(job, [file], names) for file in job.files(folder)}
    total = sum(table.units for table in tables.values())
    return {name: _check(job, table, max(total, len(table))) for name, table in tables.items()}


def _check(job: TrainingJob, tables: JobTables, total: int) -> TableCheck:
    labels = tables.columns[job.label.column]
    _, known = read_labels(job.label, labels)
    label = None
    if job.label.positive is None:  # with `positive`, every value is a valid label
        counts = count_column(label_type(job.label), labels)
        label = CheckedColumn(counts, (), (counts.losses(),) if counts.many_lost else ()), ~known
    return examine(
        tables.columns,
        job.schema_,
        label,
        missing=job.missing or ("row" if job.encoding is None else "indicator"),
        data_norm=1.0,
        total_rows=total,
        epsilon=job.epsilon,
        delta=job.delta,
        sites=len(job.sites),
        colluding=job.colluding,
    )
