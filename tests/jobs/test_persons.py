"""`person = "column"` in a job names the column of person ids; the certificate covers the person."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.core.errors import DataError, ParameterError
from taciturn.jobs.train_job import fit, gather
from taciturn.jobs.training_job import read_job

JOB = """
format = "taciturn-training/1"
name = "visits"
epsilon = 3.0
effort = "quick"
max_rounds = 4
seed = 1
person = "patient"

[label]
column = "again"
classes = ["no", "yes"]

[[sites]]
name = "north"
data = "north.csv"

[[sites]]
name = "south"
data = "south.csv"

[schema]
fields = [{ name = "age", low = 0, high = 100 }]
"""


def folder(tmp_path, job=JOB, odd="", persons=40):
    (tmp_path / "job.toml").write_text(job)
    rng = np.random.default_rng(2)
    for site in ("north", "south"):
        lines = [
            f"{rng.integers(100)},{rng.choice(['no', 'yes'])},{site}{k}" for k in range(persons) for _ in "ab"
        ]
        (tmp_path / f"{site}.csv").write_text("age,again,patient\n" + "\n".join(lines) + "\n" + odd)
    return tmp_path


def test_the_certificate_of_a_job_covers_the_person(tmp_path):
    job = read_job(folder(tmp_path) / "job.toml")
    model, _ = fit(job, gather(job, tmp_path))
    run = model.certificate_.run
    assert (run.unit, run.persons) == ("person", 80)
    assert [facts.samples for facts in model.certificate_.sites] == [40, 40]


def test_a_row_without_a_persons_id_is_refused(tmp_path):
    job = read_job(folder(tmp_path, odd="30,no,\n") / "job.toml")
    with pytest.raises(DataError, match=r"north\.csv: the person's id is missing"):
        gather(job, tmp_path)


@pytest.mark.parametrize("column", ["again", "age"])
def test_person_column_is_neither_feature_nor_target(tmp_path, column):
    folder(tmp_path, JOB.replace('person = "patient"', f'person = "{column}"'))
    with pytest.raises(ParameterError, match="`person` must name a column that is neither"):
        read_job(tmp_path / "job.toml")
