"""`taciturn describe` and `taciturn evaluate`: before and after training, under the job's budget."""

from __future__ import annotations

import json
import re

import pytest

import taciturn as tt
from taciturn.cli.app import run
from taciturn.core.errors import ExitCode


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A job of three steps under one budget: described, trained, scored."""
    folder = tmp_path_factory.mktemp("study")
    assert run(["init", str(folder / "study")]) == 0
    job = folder / "study" / "job.toml"
    owner = job.with_name("owner.toml")
    owner.write_text(owner.read_text() + '\n[budget]\nledger = "all.sqlite"\nepsilon = 5\n')
    return job


def test_a_job_is_described_trained_and_scored_under_one_budget(study, capsys, tmp_path):
    assert run(["describe", str(study), "--epsilon", "0.5", "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["epsilon"] <= 0.5 and not described["simulated"]
    assert all(0 <= column["readable"]["value"] <= 1 for column in described["columns"].values())
    done = tt.train_job(study)
    kept = tmp_path / "score.json"
    arguments = ["evaluate", str(done.folder / "model.json"), str(study), "--epsilon", "1"]
    assert run([*arguments, "--certificate", str(kept)]) == 0
    told = capsys.readouterr().out
    assert "accuracy" in told and "AUC" in told and "made one table of counts from them" in told
    tt.Certificate.from_json(kept.read_text()).verify()
    assert run([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["accuracy"]["low"] <= facts["accuracy"]["value"] <= facts["accuracy"]["high"]
    whats = [entry.what for entry in done.budget.runs]
    assert whats == ["private_description", "PrivateLogisticRegression", "private_score", "private_score"]
    assert run([*arguments[:-1], "9"]) == ExitCode.BUDGET_SPENT
    assert "no noise was drawn and nothing was charged" in capsys.readouterr().err
    assert run(["describe", str(study)]) == 0
    assert "readable" in capsys.readouterr().out


@pytest.mark.parametrize("place", [".", "missing/score.json"])
def test_place_that_cannot_take_the_certificate_is_refused_before_anything_is_spent(
    study, tmp_path, monkeypatch, capsys, place
):
    monkeypatch.chdir(tmp_path)
    for command in (["describe"], ["evaluate", "model.json"]):
        assert run([*command, str(study), "--certificate", place]) == 1
        assert "`--certificate` must be " in capsys.readouterr().err


def test_options_that_a_describing_job_states_itself_are_refused(study, tmp_path, capsys):
    for name in ("north.csv", "south.csv", "owner.toml"):
        (tmp_path / name).write_bytes((study.parent / name).read_bytes())
    text = study.read_text().replace('kind = "train"', 'kind = "describe"')
    job = tmp_path / "job.toml"
    job.write_text("\n".join(line for line in text.splitlines() if not line.startswith(("loss", "label"))))
    for option in (["--epsilon", "2"], ["--bins", "3"], ["--certificate", str(tmp_path / "c.json")]):
        assert run(["describe", str(job), *option]) == ExitCode.USAGE
        assert f"{option[0]} has no effect on a job of kind 'describe'" in capsys.readouterr().err


def test_two_sites_must_not_have_the_same_rows_under_two_names(study, tmp_path, capsys):
    (tmp_path / "job.toml").write_bytes(study.read_bytes())
    (tmp_path / "north.csv").write_bytes(study.with_name("north.csv").read_bytes())
    (tmp_path / "south.csv").symlink_to(tmp_path / "north.csv")
    for south in ("south.csv", f"../{tmp_path.name}/north.csv"):
        (tmp_path / "owner.toml").write_text(f'rows = {{ north = "north.csv", south = "{south}" }}')
        assert run(["train", str(tmp_path / "job.toml"), "--check"]) == 1
        assert "`rows.south` in owner.toml must differ from the rows of all" in capsys.readouterr().err


def test_evaluate_says_how_many_rows_get_no_answer_and_wants_a_certificate(study, capsys, tmp_path):
    done = tt.train_job(study, tmp_path / "run")
    for name in ("north.csv", "south.csv"):
        head, *lines = (study.parent / name).read_text().splitlines()
        blank = [line if k % 3 == 0 else "," + line.partition(",")[2] for k, line in enumerate(lines)]
        (tmp_path / name).write_text("\n".join([head, *blank]))
    job = tmp_path / "job.toml"
    job.write_text(study.read_text())
    owner = study.with_name("owner.toml").read_text()
    (tmp_path / "owner.toml").write_text(owner.partition("\n[budget]")[0])
    arguments = ["evaluate", str(done.folder / "model.json"), str(job), "--epsilon", "1"]
    assert run(arguments) == 0
    assert re.search(r"unanswered 0\.6\d+ \(0\.6.* of the rows. They count as wrong", capsys.readouterr().out)
    assert run([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unanswered"]["low"] > 0.6
    alone = tmp_path / "model.json"
    alone.write_bytes((done.folder / "model.json").read_bytes())  # without the certificate beside it
    arguments[1] = str(alone)
    assert run(arguments) == ExitCode.FAILED
    assert "or `public` must be True; got LoadedModel" in capsys.readouterr().err
    assert run([*arguments, "--public"]) == 0
    assert "the user declared that the scored model is public" in capsys.readouterr().out
