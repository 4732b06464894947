"""What a job would make of its tables, for the owner of the rows: nothing is trained, spent or written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.tables.cells import CellCounts, count_cells, count_column
from ..data.tables.fields import Category, Number
from ..data.tables.files import read_table
from .training import make_encoder
from .training_job import TrainingJob

OWNER_ONLY = "for the owner of this file only: these counts are computed from the rows, never share them"


@dataclass(frozen=True)
class TableCheck:
    """One site's table under the job: the cells of every column, the label last, and what rows become.

    zeros : rows that say nothing to the model, since a cell or the label is missing or unreadable.
    """

    site: str
    rows: int
    zeros: int
    columns: list[CellCounts]

    @property
    def troubles(self) -> list[str]:
        """The columns of which more than a tenth is lost, and rows that say nothing: one line each."""
        lines = [
            f"{self.site}: {lost} of {counts.rows} cells of `{counts.name}` are lost: {counts.unknown} "
            f"unreadable or unknown, {counts.missing} missing, {counts.moved} outside the range"
            for counts in self.columns
            if 10 * (lost := counts.rows - counts.fit) > counts.rows
        ]
        if 10 * self.zeros > self.rows:
            lines.append(f"{self.site}: {self.zeros} of {self.rows} rows become zeros and teach nothing")
        return lines


def check_tables(job: TrainingJob, folder: Path) -> list[TableCheck]:
    """The tables of every site, in the order of the job."""
    return [_check(job, folder, k) for k in range(len(job.sites))]


def _check(job: TrainingJob, folder: Path, k: int) -> TableCheck:
    site, label = job.sites[k], job.label
    form = (site.csv or job.csv).form()
    table = read_table(folder / site.data, [*job.schema_.names, label.column], form)
    counts = count_cells(job.schema_, table)
    target = (
        Number(label.column, -1e300, 1e300)
        if label.classes is None
        else Category(label.column, tuple(label.classes))
    )
    X = make_encoder(job).transform(table)
    column = count_column(target, table[label.column])
    labelled = np.array([count_column(target, [cell]).fit == 1 for cell in table[label.column]])
    zeros = int(np.sum(~X.any(axis=1) | ~labelled))
    return TableCheck(site.name, len(X), zeros, [*counts, column])
