"""job.toml: its meaning, and errors with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from taciturn.core.errors import ParameterError
from taciturn.jobs.training_job import read_job

STARTER = Path(__file__).resolve().parents[2] / "src" / "taciturn" / "jobs" / "starter"


def written(tmp_path, old="", new="", file="job.toml"):
    """The starter's two files, with one text replaced in one of them."""
    for name in ("job.toml", "owner.toml"):
        text = (STARTER / name).read_text(encoding="utf-8")
        assert name != file or old in text
        (tmp_path / name).write_text(text.replace(old, new, 1) if name == file else text, encoding="utf-8")
    return tmp_path / "job.toml"


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
        ("epsilon = 1.0", "epsilon = 0.0", 7, "`epsilon` must be above 0"),
        ("epsilon = 1.0", "", None, "`epsilon` must be given"),
        ("format = 2", "format = 3", 4, "`format` must be 2; got 3"),
        ('kind = "train"', 'kind = "guess"', 5, "`kind` must be 'train', 'describe', 'evaluate'"),
        ('kind = "train"', "", None, "`kind` must be given"),
        ('loss = "logistic"', 'loss = "tree"', 9, "`loss`: `kind` must be one of logistic, smooth-hinge"),
        (
            'loss = "logistic"',
            'loss = { kind = "smooth-hinge", h = 0.5, c = 1 }',
            9,
            r"does not accept these keys: \['c'\]; it accepts kind, h",
        ),
        ('graph = "complete"', 'grap = "complete"', 10, "`grap` is not a known key"),
        ('name = "south"', 'name = "north"', 21, "`sites.1.name` must differ from the names"),
        ('name = "south"', 'name = "south"\ndata = "s.csv"', 22, "`sites.1.data` belongs in owner.toml"),
        (
            'name = "south"',
            'name = "south"\nendpoint = "x"',
            22,
            "`sites.1.endpoint` is read by `taciturn site",
        ),
        ("delta = 1e-5", "delta = 1e-5\nclip = 64.0", 9, "`clip` is read by `taciturn site` only"),
        ('classes = ["no", "yes"]', "", 13, "`label` must have one of `classes` and `positive`"),
        ('classes = ["no", "yes"]', 'classes = ["no", "no"]', 15, "`label.classes` must not list a class"),
        ('column = "readmitted"', 'column = "readmitted"\nscale = 2', 15, "`label.scale` belongs to a regr"),
        ('column = "readmitted"', 'column = "age"', 14, "`label.column` must not be among"),
        ("low = 0, high = 110", "low = 0, high = -1", 27, "`age.high` must be above low = 0; got -1"),
        ("low = 0, high = 60, ", "", 28, "`fields[1]` lacks high, low"),
        ("epsilon = 1.0", "epsilon = 1.0\nrounds = 2\nmax_rounds = 3", 9, "`max_rounds` must be left out"),
        (
            "epsilon = 1.0",
            'epsilon = 1.0\nunit = "person"',
            None,
            "must be given if `unit` is 'person', and only then",
        ),
        (
            "epsilon = 1.0",
            'epsilon = 1.0\ncolluding = 1\nnoise = "norm"',
            9,
            "`noise` belongs to method 'penalty', but the method of this job is 'masked'",
        ),
        ("[schema]", "rounds = 0\n[schema]", 25, "`sites.1.rounds` is not a known key"),
        ('graph = "complete"', 'links = [["north", "east"]]', 10, "`links` must be pairs"),
        ('graph = "complete"', 'links = [["north", "north"]]', 10, "pairs of two different sites"),
        ('# links = [["north", "south"]]', 'links = [["north", "south"]] #', 10, "`graph` must be left out"),
        ('graph = "complete"', "links = []", 10, "must connect all sites.*north has no link"),
        ("epsilon = 1.0", "eps = 1.0", 7, "`eps` is not a known key; `epsilon` is missing"),
        ("epsilon = 1.0", "epsilon = -1", 7, "must be above 0.*; got -1"),
        ('graph = "complete"', 'graph = "mesh"', 10, "'star' or 'path'; got 'mesh'"),
        ('classes = ["no", "yes"]', "classes = [0, 1]", 15, 'as in the table: write classes = ."0", "1"'),
        ("delta = 1e-5", "delta = 1e-5 1e-5", None, "is not TOML: .*line 8"),
    ],
)
def test_an_error_names_file_line_and_key(tmp_path, old, new, line, words):
    path = written(tmp_path, old, new)
    with pytest.raises(ParameterError, match=words.replace("[1]", r"\[1\]").replace("(", r"\(")) as error:
        read_job(path)
    said = str(error.value)
    assert said.startswith(f"{path}, line {line}: " if line else str(path)) and "\n" not in said


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('south = "south.csv"', "", "`rows.south` must be given: .* lists this site"),
        ('south = "south.csv"', "south = 3", "`rows.south` must be a table"),
        ("[rows]", "csv = { decimal = ',' }\n[rows]", "`csv.decimal` must differ from `csv.separator`"),
        (
            'south = "south.csv"',
            'south = { data = "south.parquet", csv = { separator = ";" } }',
            "`rows.south`: `csv` must be left out: south.parquet is not a CSV file",
        ),
        (
            'north = "north.csv"',
            'north = { data = "north.csv", at = "noon" }',
            "`rows.north.at` is not a known key",
        ),
    ],
)
def test_an_error_in_the_owners_file_names_that_file(tmp_path, old, new, words):
    path = written(tmp_path, old, new, "owner.toml")
    with pytest.raises(ParameterError, match=words) as error:
        read_job(path)
    assert str(error.value).startswith(str(tmp_path / "owner.toml")) and "\n" not in str(error.value)


def test_a_loss_without_an_estimator_is_refused_before_a_run(tmp_path):
    path = written(tmp_path, 'loss = "logistic"', 'loss = "squared"')
    path.write_text(path.read_text(encoding="utf-8").replace('classes = ["no", "yes"]', ""), encoding="utf-8")
    with pytest.raises(ParameterError, match=r"line 9: `loss` must be 'log-cosh' for a regression"):
        read_job(path)


def test_a_job_without_its_owners_file_says_what_to_write(tmp_path):
    path = written(tmp_path)
    (tmp_path / "owner.toml").unlink()
    with pytest.raises(
        ParameterError, match=r"owner\.toml: this file is missing\. .*rows = \{ north = .north.csv"
    ):
        read_job(path)


def test_first_job_format_names_its_own_data_files(tmp_path):
    """It means the same as a job of the current format with an owner's file."""
    path = written(tmp_path)
    today, text = read_job(path), path.read_text(encoding="utf-8")
    (tmp_path / "owner.toml").unlink()
    for name in today.names:
        text = text.replace(f'name = "{name}"', f'name = "{name}"\ndata = "{name}.csv"')
    path.write_text(
        text.replace('format = 2\nkind = "train"', 'format = "taciturn-training/1"'), encoding="utf-8"
    )
    assert read_job(path) == today


def test_one_class_can_be_compared_with_the_rest(tmp_path):
    job = read_job(written(tmp_path, 'classes = ["no", "yes"]', 'positive = "yes"'))
    assert job.label.told == ("not yes", "yes")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ParameterError, match=r"nothing\.toml cannot be read \(No such file"):
        read_job(tmp_path / "nothing.toml")
