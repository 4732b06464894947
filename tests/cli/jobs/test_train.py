"""A newcomer's path: init, train, predict, certify; and the errors on the way."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from taciturn.cli.app import run
from taciturn.data.tables.unit_ball import UnitBallScaling
from taciturn.estimators import load_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """What `taciturn init` and `taciturn train` leave behind."""
    folder = tmp_path_factory.mktemp("first") / "play"
    assert run(["init", str(folder)]) == 0
    assert run(["train", str(folder / "job.toml")]) == 0
    return folder


def test_run_folder_has_every_documented_file(folder):
    assert {path.name for path in (folder / "run").iterdir()} == {
        "model.json",
        "certificate.json",
        "trace.npz",
        "report.html",
        "ledger.sqlite",
        "README.txt",
    }
    certificate = json.loads((folder / "run" / "certificate.json").read_text())
    assert 0.99 < certificate["epsilon"] <= 1.0 and certificate["delta"] == 1e-5
    assert certificate["status"].startswith("real")
    page = (folder / "run" / "report.html").read_text()
    assert "readmission" in page and "north" in page
    with np.load(folder / "run" / "trace.npz", allow_pickle=False) as trace:
        assert trace["released"].shape[1:] == (2, 1, 9) and trace["sites"].tolist() == ["north", "south"]
        released = trace["released"]
    loaded = load_model(folder / "run" / "model.json")
    assert loaded.certificate_.to_json() == (folder / "run" / "certificate.json").read_text()
    model = loaded[-1]
    share = UnitBallScaling(1.0, intercept=True).share
    assert model.coef_[0] == pytest.approx(released[-1, :, 0, :-1].mean(axis=0) * share)


def test_run_folder_states_who_may_see_each_file(folder):
    said = (folder / "run" / "README.txt").read_text()
    published, kept = said.split("Keep the ledger")
    for path in (folder / "run").iterdir():
        if path.name != "README.txt":
            assert path.name in (kept if path.suffix == ".sqlite" else published)
    assert "Never share the tables of the sites" in kept
    assert max(map(len, said.splitlines())) <= 130


def test_every_number_of_the_certificate_can_be_computed_again(folder, capsys):
    assert run(["verify", str(folder / "run" / "certificate.json")]) == 0
    assert "Verified" in capsys.readouterr().out


def test_predictions_for_new_records(folder, capsys, tmp_path):
    assert run(["predict", str(folder / "run" / "model.json"), str(folder / "new.csv")]) == 0
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(lines) == 20 and {line["readmitted"] for line in lines} <= {"no", "yes"}
    assert all(0.5 <= float(line["probability"]) <= 1 for line in lines)
    out = tmp_path / "out.csv"
    assert (
        run(["predict", str(folder / "run" / "model.json"), str(folder / "north.csv"), "--out", str(out)])
        == 0
    )
    truth = [line["readmitted"] for line in csv.DictReader((folder / "north.csv").read_text().splitlines())]
    said = [line["readmitted"] for line in csv.DictReader(out.read_text().splitlines())]
    assert np.mean(np.array(truth) == np.array(said)) > 0.75, "it has learnt something"


def test_summary_states_the_cost_and_what_it_does_not_cover(folder, capsys, tmp_path):
    assert run(["train", str(folder / "job.toml"), "--out", str(tmp_path / "again")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "north (3,000 rows)" in said and "at delta = 1e-05" in said
    assert "the epsilons add up" in said and "report.html" in said and "accuracy" not in said


def test_json_for_a_machine(folder, capsys, tmp_path):
    assert run(["train", str(folder / "job.toml"), "--out", str(tmp_path / "b"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["epsilon"] <= facts["asked"] == 1.0 and facts["samples"] == {"north": 3000, "south": 2000}
    assert all(Path(name).exists() for name in facts["files"])


def edited(folder: Path, tmp_path: Path, old: str, new: str) -> Path:
    """The job of the folder with its tables, with one text replaced in it or in the owner's file."""
    texts = {name: (folder / name).read_text() for name in ("job.toml", "owner.toml")}
    assert any(old in text for text in texts.values())
    for file, text in texts.items():
        text = text.replace(old, new, 1)
        for name in ("north.csv", "south.csv"):
            text = text.replace(f'"{name}"', f'"{folder / name}"')
        (tmp_path / file).write_text(text)
    return tmp_path / "job.toml"


def test_check_validates_everything_and_writes_nothing(folder, tmp_path, capsys):
    job = edited(folder, tmp_path, "epsilon = 1.0", "epsilon = 2.0")
    assert run(["train", str(job), "--check"]) == 0
    assert "5000 rows at 2 sites" in capsys.readouterr().out and not (tmp_path / "run").exists()


def test_seeded_run_is_marked_as_a_rehearsal(folder, tmp_path, capsys):
    job = edited(folder, tmp_path, "epsilon = 1.0", 'epsilon = 1.0\nseed = 0\nnoise = "gaussian"\nrounds = 2')
    assert run(["train", str(job)]) == 0
    assert "SIMULATED" in " ".join(capsys.readouterr().out.split())


def test_a_regression_from_parquet(folder, tmp_path, capsys):
    arrow = pytest.importorskip("pyarrow.csv", reason="the extra `tables` is not installed")
    from pyarrow import parquet

    job = edited(folder, tmp_path, 'loss = "logistic"', 'loss = "log-cosh"\nrounds = 2\nnoise = "gaussian"')
    text = job.read_text().replace('column = "readmitted"', 'column = "stay"\nscale = 5')
    text = text.replace('classes = ["no", "yes"]', "").replace(
        '{ name = "stay", low = 0, high = 60, log = true },', ""
    )
    owner = (tmp_path / "owner.toml").read_text()
    for name in ("north", "south"):
        table = arrow.read_csv(folder / f"{name}.csv")
        parquet.write_table(table, tmp_path / f"{name}.parquet")
        owner = owner.replace(f'"{folder / name}.csv"', f'"{name}.parquet"')
    job.write_text(text)
    (tmp_path / "owner.toml").write_text(owner)
    assert run(["train", str(job)]) == 0
    capsys.readouterr()
    assert run(["predict", str(tmp_path / "run" / "model.json"), str(folder / "new.csv")]) == 0
    numbers = [float(line["stay"]) for line in csv.DictReader(capsys.readouterr().out.splitlines())]
    assert len(numbers) == 20 and np.isfinite(numbers).all()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("epsilon = 1.0", "epsilon = -1.0", "job.toml, line 7: `epsilon`"),
        ('"north.csv"', '"west.csv"', "west.csv cannot be read"),
        ('column = "readmitted"', 'column = "outcome"', "north.csv lacks the column outcome."),
        ("epsilon = 1.0", "epsilon = 1.0\nC = 9e9", "`C` must not exceed"),
    ],
)
def test_invalid_input_gives_a_one_line_error_and_writes_nothing(folder, tmp_path, capsys, old, new, words):
    job = edited(folder, tmp_path, old, new)
    assert run(["train", str(job)]) == 1
    captured = capsys.readouterr()
    assert words in captured.err and captured.err.count("\n") == 1 and captured.out == ""
    assert not (tmp_path / "run").exists()


def test_nothing_is_ever_overwritten(folder, capsys):
    before = (folder / "run" / "model.json").read_bytes()
    assert run(["train", str(folder / "job.toml")]) == 1
    assert "must be a new or empty folder" in capsys.readouterr().err
    assert run(["init", str(folder)]) == 1
    assert "must be a new or empty folder" in capsys.readouterr().err
    assert (folder / "run" / "model.json").read_bytes() == before


def test_a_row_never_shows_in_what_is_printed_or_written(folder, tmp_path, capsys):
    for name in ("north.csv", "south.csv"):
        lines = (folder / name).read_text().splitlines()
        lines[5] = "71,98765.4321,1,yes,xyzzy,maybe"
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    job = tmp_path / "job.toml"
    job.write_text((folder / "job.toml").read_text())
    (tmp_path / "owner.toml").write_text((folder / "owner.toml").read_text())
    assert run(["train", str(job)]) == 0
    captured = capsys.readouterr()
    written = b"".join(path.read_bytes() for path in (tmp_path / "run").iterdir())
    for secret in ("98765", "xyzzy", "maybe"):
        assert secret not in captured.out + captured.err and secret.encode() not in written
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert [site["samples"] for site in certificate["sites"]] == [3000, 2000], "no row was dropped"


def test_a_stopped_run_says_where_its_cost_is_written(folder, tmp_path, capsys, monkeypatch):
    from taciturn.jobs import train_job as train

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "write_results", stop)
    out = tmp_path / "out"
    assert run(["train", str(folder / "job.toml"), "--out", str(out)]) == 130
    said = capsys.readouterr()
    end = f"the cost of the run is in {out / 'ledger.sqlite'}.\n"
    assert said.err == f"taciturn: stopped; {end}" and said.out == ""
    monkeypatch.setattr(train, "set_aside", stop)
    monkeypatch.setattr(train, "interrupted_runs", lambda *_, **__: [])
    assert run(["train", str(folder / "job.toml"), "--out", str(tmp_path / "other")]) == 130
    assert capsys.readouterr().err == "taciturn: stopped; nothing was spent.\n"
    assert not (tmp_path / "other").exists()


def test_full_disk_leaves_no_partial_results(folder, tmp_path, capsys, monkeypatch):
    from errno import ENOSPC

    from taciturn.jobs import run_folder

    whole = run_folder.write_whole

    def full(path, content):
        if path.name == "report.html":
            raise OSError(ENOSPC, "No space left on device", str(path))
        return whole(path, content)

    monkeypatch.setattr(run_folder, "write_whole", full)
    out = tmp_path / "out"
    assert run(["train", str(folder / "job.toml"), "--out", str(out)]) == 1
    said = capsys.readouterr().err
    end = f"the cost of the run is in {out / 'ledger.sqlite'}.\n"
    assert said == f"taciturn: {out}: No space left on device; {end}"
    assert {path.name for path in out.iterdir()} <= {"ledger.sqlite", "ledger.sqlite.lock"}


@pytest.mark.parametrize("target", ["/dev/full", "job.toml"])
def test_results_need_a_folder(folder, capsys, target):
    path = target if target.startswith("/") else str(folder / target)
    assert run(["train", str(folder / "job.toml"), "--out", path]) == 1
    assert "must be a new or empty folder; got" in capsys.readouterr().err


def test_predict_names_its_own_option_for_another_separator(folder, capsys, tmp_path):
    (tmp_path / "new.csv").write_text((folder / "new.csv").read_text().replace(",", ";"))
    command = ["predict", str(folder / "run" / "model.json"), str(tmp_path / "new.csv")]
    assert run(command) == 1
    assert "are separated by semicolons; set --separator ';', or use commas" in capsys.readouterr().err
    assert run([*command, "--separator", ";"]) == 0


def test_predictions_on_a_full_disk_are_one_line(folder, capsys):
    model = str(folder / "run" / "model.json")
    assert run(["predict", model, str(folder / "new.csv"), "--out", "/dev/full"]) == 1
    said = capsys.readouterr().err
    assert "No space left on device" in said and said.count("\n") == 1


def test_empty_ledger_left_by_a_full_disk_is_refused(folder, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "ledger.sqlite").touch()
    assert run(["train", str(folder / "job.toml"), "--out", str(out)]) == 0
    assert not list(out.glob("ledger-*.sqlite")) and (out / "ledger.sqlite").stat().st_size
