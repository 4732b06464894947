"""job.toml: what it says, and one line with file, line and key where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from taciturn.errors import ParameterError
from taciturn.jobs.training_job import read_job

STARTER = Path(__file__).resolve().parents[2] / "src" / "taciturn" / "jobs" / "starter" / "job.toml"


def written(tmp_path, old="", new=""):
    text = STARTER.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "job.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def test_the_starter_is_in_order(tmp_path):
    job = read_job(written(tmp_path, "epsilon = 1.0", "epsilon = 2"))
    assert job.epsilon == 2.0 and job.names == ("north", "south") and len(job.schema_) == 5
    assert job.network() == "complete"


def test_links_name_the_sites_in_any_order(tmp_path):
    path = written(tmp_path, 'graph = "complete"', 'links = [["south", "north"]]')
    assert read_job(path).network().edges == ((0, 1),)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("epsilon = 1.0", "epsilon = 0.0", 6, "`epsilon`: must be above 0"),
        ("epsilon = 1.0", "", None, "`epsilon`: must be given"),
        (
            'loss = "logistic"',
            'loss = "tree"',
            8,
            "`loss`: must be one of 'logistic', 'smooth-hinge' or",
        ),
        ('graph = "complete"', 'grap = "complete"', 9, "`grap`: is not a key that belongs here"),
        ('data = "south.csv"', "", 20, "`sites.1.data`: must be given"),
        ('name = "south"', 'name = "north"', 21, "`sites.1.name` must differ from the names"),
        ('classes = ["no", "yes"]', "", 12, "`label.classes` must be given for a classifier"),
        ('classes = ["no", "yes"]', 'classes = ["no", "no"]', 14, "`label.classes` must differ"),
        ('column = "readmitted"', 'column = "age"', 13, "`label.column` must not be among"),
        ("low = 0, high = 110", "low = 0, high = -1", 28, "`age.high` must be above low = 0; got -1"),
        ("low = 0, high = 60, ", "", 29, "`fields[1]` lacks high, low"),
        ("epsilon = 1.0", "epsilon = 1.0\nrounds = 2\nmax_rounds = 3", 8, "`max_rounds` must be left out"),
        ("[schema]", "rounds = 0\n[schema]", 26, "`sites.1.rounds`: is not a key"),
        ('# links = [["north", "south"]]', 'links = [["north", "east"]] #', 10, "`links` must be pairs"),
        ('# links = [["north", "south"]]', 'links = [["north", "north"]] #', 10, "pairs of two sites' names"),
        ('# links = [["north", "south"]]', 'links = [["north", "south"]] #', 9, "`graph` must be left out"),
        (
            '# links = [["north", "south"]]',
            "links = [] #",
            10,
            "must join all sites.*nobody is linked to north",
        ),
        ("epsilon = 1.0", "eps = 1.0", 6, "`eps`: is not a key that belongs here; `epsilon` is missing"),
        ("epsilon = 1.0", "epsilon = -1", 6, "must be above 0.*; got -1"),
        ('graph = "complete"', 'graph = "mesh"', 9, "'star' or 'path'; got 'mesh'"),
        ('classes = ["no", "yes"]', "classes = [0, 1]", 14, 'written as in the files: classes = ."0", "1"'),
        ('data = "south.csv"', 'data = "./north.csv"', 22, "`sites.1.data` must be a file of its own"),
        ("delta = 1e-5", "delta = 1e-5 1e-5", None, "is not TOML: .*line 7"),
    ],
)
def test_an_error_names_file_line_and_key(tmp_path, old, new, line, words):
    path = written(tmp_path, old, new)
    with pytest.raises(ParameterError, match=words.replace("[1]", r"\[1\]").replace("(", r"\(")) as error:
        read_job(path)
    said = str(error.value)
    assert said.startswith(f"{path}, line {line}: " if line else str(path)) and "\n" not in said


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ParameterError, match=r"nothing\.toml: cannot be read \(No such file"):
        read_job(tmp_path / "nothing.toml")
