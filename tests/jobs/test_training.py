"""Tables become rows: dates, booleans and localised CSV files give the same rows as plain ones."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.core.errors import ParameterError
from taciturn.jobs.train_job import gather
from taciturn.jobs.training_job import read_job

JOB = """
format = "taciturn-training/1"
name = "visits"
epsilon = 1.0
{csv}

[label]
column = "again"
classes = ["no", "yes"]

[[sites]]
name = "north"
data = "north.csv"

[[sites]]
name = "south"
data = "south.csv"
csv = {{ separator = "," }}

[schema]
fields = [
    {{ name = "age", low = 0, high = 100 }},
    {{ name = "smoker", kind = "boolean" }},
    {{ name = "admitted", first = 2020-01-01, last = "2020-12-31" }},
]
"""


def test_a_site_may_write_its_files_in_its_own_way(tmp_path):
    (tmp_path / "job.toml").write_text(JOB.format(csv='csv = { separator = ";", decimal = "," }'))
    (tmp_path / "north.csv").write_text(
        "age;smoker;admitted;again\n50,5;ja;2020-07-01;no\n25;yes;2020-12-31;yes\n"
    )
    (tmp_path / "south.csv").write_text(
        "age,smoker,admitted,again\n25,1,2020-12-31,yes\n25,0,2021-05-05,no\n"
    )
    rows = gather(read_job(tmp_path / "job.toml"), tmp_path)
    assert not rows.X[0].any(), "'ja' is no declared truth: the row says nothing"
    np.testing.assert_allclose(rows.X[1], np.array([0.25, 1.0, 1.0]) / np.sqrt(2.0625))
    np.testing.assert_array_equal(rows.X[2], rows.X[1])
    np.testing.assert_allclose(rows.X[3], np.array([0.25, 0.0, 1.0]) / np.sqrt(1.0625))


def test_impossible_csv_format_gives_a_one_line_error_with_the_file(tmp_path):
    (tmp_path / "job.toml").write_text(JOB.format(csv='csv = { decimal = "," }'))
    with pytest.raises(ParameterError, match=r"job\.toml, line 5: .*`csv.decimal` must differ from"):
        read_job(tmp_path / "job.toml")


def test_an_encoding_makes_curves_and_keeps_rows_with_an_empty_cell(tmp_path):
    text = JOB.format(csv="") + "\n[encoding]\ncurves = 3\nsurfaces = 2\n"
    (tmp_path / "job.toml").write_text(text)
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text("age,smoker,admitted,again\n50,,2020-07-01,no\n,1,,yes\n")
    rows = gather(read_job(tmp_path / "job.toml"), tmp_path)
    assert rows.X.shape == (4, len(rows.encoder.get_feature_names_out())) and rows.X.any(axis=1).all()
    assert (rows.encoder.curves, rows.encoder.surfaces, rows.encoder.missing_as) == (3, 2, "indicator")


def test_a_default_encoding_follows_from_the_number_of_rows(tmp_path):
    (tmp_path / "job.toml").write_text(JOB.format(csv="") + "\n[encoding]\n")
    line = "50,1,2020-07-01,no\n"
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text("age,smoker,admitted,again\n" + line * 600)
    rows = gather(read_job(tmp_path / "job.toml"), tmp_path)
    assert (rows.encoder.curves, rows.encoder.surfaces) == (9, 0)
