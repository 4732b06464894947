"""`[budget]` in an owner's file: several jobs on the same rows under one budget."""

from __future__ import annotations

import json

import pytest

import taciturn as tt
from support.asked import NAMES, SCHEMA, patients, to_csv
from taciturn.cli.app import run
from taciturn.core.errors import BudgetExceeded, ParameterError
from taciturn.jobfile.toml_files import write_toml
from taciturn.jobs.statistics import ask_job
from taciturn.jobs.training_job import read_job


@pytest.fixture
def job(tmp_path):
    assert run(["init", str(tmp_path / "study")]) == 0
    path = tmp_path / "study" / "job.toml"
    owner = path.with_name("owner.toml")
    owner.write_text(owner.read_text() + '\n[budget]\nledger = "../all.sqlite"\nepsilon = 1\ndelta = 1e-5\n')
    return path


def test_jobs_share_a_budget_and_the_one_that_would_pass_it_is_refused(job, tmp_path, capsys):
    epsilon = read_job(job).epsilon
    done = tt.train_job(job, tmp_path / "one")
    assert done.budget.path.samefile(tmp_path / "all.sqlite")
    assert done.budget.spent == pytest.approx(epsilon, rel=1e-3)
    with pytest.raises(BudgetExceeded, match="no noise was drawn and nothing was charged"):
        tt.train_job(job, tmp_path / "two")
    assert not (tmp_path / "two").exists()
    capsys.readouterr()
    assert run(["budget", "show", str(tmp_path / "all.sqlite")]) == 0
    told = capsys.readouterr().out
    assert "PrivateLogisticRegression: epsilon = " in told and "Note the head in another place" in told
    assert run(["budget", "show", str(tmp_path / "all.sqlite"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["spent"] >= done.budget.spent and facts["left"] <= done.budget.left
    assert [entry["finished"] for entry in facts["runs"]] == [True]


def test_a_rehearsal_has_no_budget(job):
    job.write_text("seed = 0\n" + job.read_text())
    with pytest.raises(ParameterError, match="`seed` must be left out if there is a `budget`"):
        read_job(job)


def test_missing_budget_file_gives_a_one_line_error(tmp_path, capsys):
    assert run(["budget", "show", str(tmp_path / "none.sqlite")]) == 1
    assert "there is no budget at" in capsys.readouterr().err


def test_job_of_questions_is_charged_to_the_owners_budget(tmp_path):
    for k, name in enumerate(NAMES):
        (tmp_path / f"{name}.csv").write_text(to_csv(patients(300, k)))
    owner = {"rows": {name: f"{name}.csv" for name in NAMES}}
    owner["budget"] = {"ledger": "all.sqlite", "epsilon": 1, "delta": 1e-5}
    (tmp_path / "owner.toml").write_text(write_toml(owner))
    facts = {"format": 2, "name": "q", "schema": SCHEMA, "sites": [{"name": name} for name in NAMES]}
    questions = [{"kind": "describe", "columns": [name]} for name in ("age", "sex")]
    asked = {"kind": "several", "questions": questions, "epsilon": 0.7, "colluding": 1}
    (tmp_path / "job.toml").write_text(write_toml(facts | asked))
    (answer, _), _ = ask_job(tmp_path / "job.toml")
    budget = tt.Budget(tmp_path / "all.sqlite")
    assert [run.what for run in budget.runs] == ["q"] and budget.spent == answer.certificate.epsilon
    with pytest.raises(BudgetExceeded, match="no noise was drawn and nothing was charged"):
        ask_job(tmp_path / "job.toml", tmp_path / "again")
