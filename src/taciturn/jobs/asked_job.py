"""A job that asks questions, on one machine: from files to answers, as text, HTML, CSV, JSON and pictures."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

from ..core.errors import ParameterError
from ..core.files import write_whole
from ..jobfile.job_format import SEVERAL
from ..jobfile.job_rows import read_tables
from ..questions.answer import PrivateAnswer
from ..questions.asking import Asking
from ..questions.kinds import read_questions
from ..questions.question import PublicTable, Spending
from ..statistics.counting import CountWishes, run_asking
from .run_folder import CERTIFICATE, RESULT, write_answers
from .training_job import read_asked


def ask_job(path: Path, out: Path | None = None) -> tuple[list[PrivateAnswer], list[Path]]:
    """The answers to the questions of a job, and the files that they were written to: a folder beside it."""
    job, folder = read_asked(path), path.parent
    out = folder / "answers" if out is None else out
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ParameterError(f"`--out` must be a new or empty folder; {out} is not empty.")
    questions = read_questions(job.questions, several=job.kind == SEVERAL)
    schema = None if job.table is None else job.schema_
    public = PublicTable(
        schema, job.label, tuple(sorted(job.names)), folder, by_person=job.person is not None
    )
    asking = Asking(questions, public, Spending(job.epsilon, job.delta, job.colluding))
    tables = read_tables(job, job.files(folder), asking.reads)
    wishes = CountWishes(
        job.epsilon,
        job.delta,
        tables.site,
        tables.person,
        colluding=job.colluding,
        large_delta=job.large_delta,
        random_state=job.seed,
    )
    with nullcontext() if job.budget is None else job.budget.open(folder):
        found, totals = run_asking(asking, tables.columns, len(tables), wishes, job.name)
    written = write_answers(out, found, [one.kind for one in questions])
    about = {"simulated": job.simulated, "run": {"job": job.name, "sites": list(job.names)}}
    result = asking.document(found, totals, about)
    written += [
        write_whole(out / RESULT, json.dumps(result, indent=1) + "\n"),
        write_whole(out / CERTIFICATE, found[0].certificate.to_json()),
    ]
    return found, written
