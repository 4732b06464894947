"""A site's rows: the number that the job states, norm at most 1, never quoted."""

import hashlib
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

from support.sitering import REAL
from support.sitework import SCHEMA, TABLE, network, shards, sites, table
from taciturn.cli.app import run
from taciturn.core.errors import DataError, SiteError
from taciturn.jobfile.job_rows import read_arrays
from taciturn.jobfile.toml_files import write_toml
from taciturn.sites.files.rows import load_rows, load_table
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.prepare import make_ready


def test_arrays_come_back_as_they_are(tmp_path):
    made = sites(tmp_path)
    X, y = load_rows(made[1])
    expected = shards(3)[1]
    assert np.array_equal(X, expected[0]) and np.array_equal(y, expected[1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X[:-1], y[:-1]), "the job says 24 rows for site-0; the file has 23"),
        (lambda X, y: (X[:, :-1], y), "the job has dimension 4; X has 3 columns"),
        (lambda X, y: (X, y[:-1]), "same number of rows"),
        (lambda X, y: (X * 777.0, y), "norm at most 1"),
        (lambda X, y: (np.where(X > 0.5, np.nan, X), y), "finite"),
        (lambda X, y: (X.astype(object), y), r"must be an \.npz file with arrays of numbers: X, y"),
        (lambda X, y: (X[0], y), "two dimensions"),
    ],
)
def test_errors_quote_no_number_of_the_data(tmp_path, change, words):
    site = sites(tmp_path)[0]
    X, y = change(*shards(3)[0])
    np.savez(site.path(site.file.data), X=X, y=y)
    with pytest.raises(SiteError, match=words) as raised:
        load_rows(site)
    assert "777" not in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04broken", b"nonsense"])
def test_a_broken_file_is_named(tmp_path, content):
    site = sites(tmp_path)[0]
    site.path(site.file.data).write_bytes(content)
    with pytest.raises(SiteError, match=r"rows\.npz"):
        load_rows(site)


def test_every_changed_byte_of_an_archive_is_a_data_error(tmp_path):
    """Damage inside a compressed member raises other errors than damage of the archive's own tables."""
    path, X = tmp_path / "rows.npz", np.random.default_rng(0).integers(0, 4, 300)
    np.savez_compressed(path, X=X)
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            assert len(read_arrays(path, "X")) == 1
        except DataError as error:
            assert "rows.npz" in str(error)


def test_a_table_is_encoded_by_the_public_schema_and_no_row_is_dropped(tmp_path):
    X, y = load_rows(table(tmp_path, TABLE))
    assert X.shape == (6, 3) and np.linalg.norm(X, axis=1).max() <= 1.0
    assert X[0].tolist() == pytest.approx([0.5 / np.sqrt(1.25), 1 / np.sqrt(1.25), 0.0])
    assert y.tolist() == [1.0, -1.0, 1.0, -1.0, -1.0, 1.0]
    assert not X[2].any() and not X[3].any() and not X[4].any()  # no age, no label, no row


def test_the_intercept_lies_inside_the_bound(tmp_path):
    site = table(tmp_path, TABLE, intercept=True)
    X, _ = load_rows(site)
    assert site.job.dimension == 4 and site.job.feature_names[-1] == "intercept"
    assert X[0, -1] > 0 and np.linalg.norm(X, axis=1).max() <= 1.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age,sex\n1,f\n", r"line 1 of \S*rows\.csv lacks the column income\."),
        ("age,age,income\n", "each once"),
        ("", r"line 1 of \S*rows\.csv is empty"),
        ("age,sex,income,name\n", "has no rows"),
        ("age,sex,income,name\n1,f,high,secret" + "-7" * 100_000 + "\n", r"line 2 of .* is not CSV"),
        (TABLE + "10,f,high,secret-7\n", "says 6 rows"),
    ],
)
def test_a_table_that_does_not_fit_is_named_and_not_quoted(tmp_path, text, words):
    with pytest.raises(SiteError, match=words) as raised:
        load_rows(table(tmp_path, text))
    assert "secret" not in str(raised.value) and "rows.csv" in str(raised.value)


def test_parquet_reads_like_csv(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow as pa

    site = table(tmp_path, TABLE, suffix="parquet")
    rows = [line.split(",") for line in TABLE.splitlines()]
    rows = [row if len(row) == 4 else [None] * 4 for row in rows]
    columns = {name: [row[k] for row in rows[1:]] for k, name in enumerate(rows[0])}
    parquet.write_table(pa.table(columns), site.path(site.file.data))
    expected = load_rows(table(tmp_path / "csv", TABLE))
    for got, wanted in zip(load_rows(site), expected, strict=True):
        assert np.array_equal(got, wanted)
    site.path(site.file.data).write_bytes(b"nonsense")
    with pytest.raises(SiteError, match="Parquet"):
        load_rows(site)


@pytest.mark.parametrize(("beyond", "passes"), [(0.5e-12, True), (2e-12, False), (1e-9, False)])
def test_a_row_is_as_long_as_the_bounds_allow_and_no_longer(tmp_path, beyond, passes):
    """The accountant takes X = 1 + 4e-12 for a bound of 1: no row beyond that may pass."""
    site = sites(tmp_path)[0]
    X, y = shards(3)[0]
    X[5] = [1.0 + beyond, 0.0, 0.0, 0.0]
    np.savez(site.path(site.file.data), X=X, y=y)
    if passes:
        load_rows(site)
    else:
        with pytest.raises(SiteError, match="norm at most 1"):
            load_rows(site)


def test_npz_archive_refuses_csv_settings(tmp_path):
    site = sites(tmp_path, site={"csv": {"separator": ";"}})[0]
    with pytest.raises(SiteError, match=r"`csv` must be left out of site\.toml"):
        load_rows(site)


def test_two_classes_are_declared_as_in_a_training_job(tmp_path):
    """A row with neither label becomes zeros; with `positive` it counts as the other class."""
    label = {"column": "income", "classes": ["low", "high"]}
    text = TABLE.replace("200,m,low", "200,m,middling")
    X, y = load_rows(table(tmp_path / "two", text, label=label))
    assert y[0] == 1.0 and not X[1].any()
    assert load_rows(table(tmp_path / "one", text))[0][1].any()


def test_the_csv_of_another_country_and_a_missing_cell_are_read_as_in_a_training_job(tmp_path):
    plain = load_rows(table(tmp_path / "plain", TABLE, missing="field"))
    site = table(tmp_path / "other", TABLE.replace(",", ";"), missing="field")
    path = site.folder / "site.toml"
    path.write_text(path.read_text() + 'csv = { separator = ";", decimal = "," }\n')
    for mine, theirs in zip(load_rows(load_site(path)), plain, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert plain[0][2].any(), "an age is missing, and the rest of the row counts"


def test_a_table_that_changes_after_approval_is_named_and_nothing_is_charged(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    job = {"schema": SCHEMA, "label": {"column": "income", "positive": "high"}, "C": 1.0, "dimension": None}
    own = REAL | {"budget": {"epsilon": 50.0}, "data": "rows.csv"}
    job |= {"intercept": False, "seed": None}
    start = network(tmp_path / "net", [(0, 1)], data=shards(2, rows=6), job=job, site=own)[0]
    rows = start.with_name("rows.csv")
    rows.write_text(TABLE)
    assert run(["site", "check", str(start), "--wait", "0"]) == 0
    assert run(["site", "approve", str(start), "--yes"]) == 0
    capsys.readouterr()
    for text, words in (
        (TABLE.replace("20,m,high,secret-6\n", ""), "the file has 5. Restore the table that was counted"),
        (TABLE.replace("sex", "gender"), "rows.csv lacks the column sex. Names must match exactly"),
        (TABLE.replace("note", "age"), "names of the columns, each once"),
        ("", "rows.csv is empty; it must contain the names of the columns"),
        (None, "cannot be read (No such file or directory)"),
    ):
        rows.unlink() if text is None else rows.write_text(text)
        assert run(["site", "run", str(start)]) == 6
        said = capsys.readouterr().err
        assert words in said and "rows.csv" in said and "secret" not in said and said.count("\n") == 1
    assert not list(tmp_path.rglob("budget.sqlite")), "an account was opened"
    rows.write_text(TABLE)
    assert run(["site", "check", str(start), "--wait", "0"]) == 0
    assert "0 runs spent epsilon 0, 50.0 left" in capsys.readouterr().out


def test_an_archive_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    site = sites(tmp_path)[0]
    path, load = site.path(site.file.data), np.load

    def load_and_grow(*args, **options):
        found = load(*args, **options)
        path.write_bytes(path.read_bytes() + b"more")
        return found

    monkeypatch.setattr(np, "load", load_and_grow)
    with pytest.raises(SiteError, match=r"rows\.npz changed while it was read; run again"):
        load_rows(site)


@pytest.mark.process
def test_a_program_of_arrays_reads_the_rows_of_a_network(tmp_path, monkeypatch):
    examples = Path(__file__).parents[3] / "examples"
    monkeypatch.setenv("PYTHONPATH", f"{os.environ.get('PYTHONPATH', '')}:{examples}")
    sha256 = hashlib.sha256((examples / "own_programs.py").read_bytes()).hexdigest()
    asked = {"program": "own_programs:Median", "sha256": sha256, "settings": {"rounds": 6}}
    job = {"format": 2, "name": "median", "kind": "program", "program": asked, "dimension": 1}
    facts = job | {"epsilon": 2.0, "colluding": 1, "seed": 5}
    own = {"penalty": None, "noise": None, "output_noise": None}
    path = network(tmp_path, [(0, 1), (1, 2), (0, 2)], data=shards(3, d=1), site=own)[0]
    old = tomllib.loads((tmp_path / "job.toml").read_text())
    (tmp_path / "job.toml").write_text(write_toml(facts | {key: old[key] for key in ("sites", "links")}))
    ready = make_ready(load_site(path))
    assert ready.run.rounds == 6
    np.testing.assert_array_equal(load_table(ready.site).array, shards(3, d=1)[0][0])
    with pytest.raises(SiteError, match="`intercept` belongs to kind 'train'"):
        (tmp_path / "job.toml").write_text("intercept = false\n" + (tmp_path / "job.toml").read_text())
        load_site(path)
