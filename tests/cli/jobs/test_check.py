"""`taciturn check` reports bad cells to the owner of the rows only, before anything is spent."""

from __future__ import annotations

import csv

import pytest

from taciturn.cli.app import run
from taciturn.jobs.statistics import check_tables
from taciturn.jobs.training_job import read_job


@pytest.fixture
def study(tmp_path):
    folder = tmp_path / "study"
    assert run(["init", str(folder)]) == 0
    return folder


def _alter(path, column, value):
    """The table with other cells in one column."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for k, row in enumerate(rows):
        row[column] = value(k, row[column])
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def test_dates_in_an_age_column_are_reported(study, capsys):
    rows = _alter(study / "north.csv", "age", lambda k, old: "1980-05-17")
    assert run(["check", str(study / "job.toml")]) == 0
    shown = capsys.readouterr().out
    assert f"WARNING {rows} of {rows} cells of `age` do not fit" in shown
    assert f"{rows} of {rows} rows become zeros" in shown and "never share" in shown
    assert shown.index("WARNING") < shown.index("south") and "WARNING" not in shown.split("south")[1]
    assert "1980" not in shown
    assert {path.name for path in study.iterdir()} >= {"job.toml"} and not (study / "run").exists()


def test_every_kind_of_cell_is_counted(study):
    cells = ["31", "200", "-5", "inf", "old", "", "?", "nan"]
    rows = _alter(study / "south.csv", "age", lambda k, old: cells[k % 8])
    south = check_tables(read_job(study / "job.toml"), study)["south"]
    age = next(c.counts for c in south.columns if c.counts.name == "age")
    eighth = rows // 8
    assert (age.fit, age.moved, age.unknown, age.missing) == (eighth, 3 * eighth, eighth, 3 * eighth)
    assert south.zeros == 4 * eighth


def test_undeclared_labels_are_counted(study):
    rows = _alter(study / "south.csv", "readmitted", lambda k, old: "perhaps" if k % 4 == 0 else old)
    south = check_tables(read_job(study / "job.toml"), study)["south"]
    assert south.columns[-1].counts.unknown == south.zeros == rows // 4


def test_a_good_table_gives_no_warning_and_one_site_can_be_asked_for(study, capsys):
    assert run(["check", str(study / "job.toml"), "--site", "north"]) == 0
    shown = capsys.readouterr().out
    assert "WARNING" not in shown and "south" not in shown and "Nothing was trained or spent." in shown
    assert run(["check", str(study / "job.toml"), "--site", "east"]) == 1
