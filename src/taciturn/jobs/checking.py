"""What a job would make of its tables, for the owner of the rows: nothing is trained, spent or written."""

from __future__ import annotations

from pathlib import Path

from ..data.tables.cell_counts import count_column
from ..jobfile.job_rows import JobTables, label_type, read_labels, read_tables
from ..statistics.table_check import CheckedColumn, TableCheck, examine
from .training_job import TrainingJob


def check_tables(job: TrainingJob, folder: Path) -> dict[str, TableCheck]:
    """The tables of every site by its name, in the order of the job."""
    names = [*job.schema_.names, job.label.column]
    tables = {file.site.name: read_tables(job, [file], names) for file in job.files(folder)}
    total = sum(table.units for table in tables.values())
    return {name: _check(job, table, max(total, len(table))) for name, table in tables.items()}


def _check(job: TrainingJob, tables: JobTables, total: int) -> TableCheck:
    labels = tables.columns[job.label.column]
    _, known = read_labels(job.label, labels)
    label = None
    if job.label.positive is None:  # else every value is a label
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
