"""`taciturn plan` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taciturn import Graph, plan
from taciturn.cli.app import run
from taciturn.jobs.training_job import read_job
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.prepare import prepare_run

DESIGN = "plan --epsilon 1 --delta 1e-5 --samples 9044 --sites 5 --graph ring --dimension 105".split()
QUICK = [*DESIGN, "--effort", "quick"]


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert run([*QUICK, *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return dict(json.loads(captured.out))


def test_the_command_of_the_design(capsys: pytest.CaptureFixture[str]) -> None:
    found = planned(capsys)
    epsilon = found["epsilon"]
    assert isinstance(epsilon, float) and 0.99 < epsilon <= 1.0
    assert found["C"] == 1.0


def test_options_reach_the_plan(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"fields": [{"name": "age", "low": 0, "high": 99}]}))
    options = "--C 10 --regularization 0.5 --rounds 2 --noise norm --loss log-cosh --dimension 2 --outputs 2"
    found = planned(
        capsys,
        *options.split(),
        "--schema",
        str(schema),
        "--epsilon",
        "1,2,2,2,2",
        "--samples",
        "50,90,90,90,90",
    )
    assert (found["C"], found["regularization"], found["rounds"]) == (10.0, 0.5, found["rounds"])
    assert found["proxy"] == "generated from the schema"
    assert found["budget"] == {"epsilon": [1.0, 2.0, 2.0, 2.0, 2.0], "delta": 1e-5}
    assert isinstance(found["noise"], dict) and found["noise"]["kind"] == "norm"


def test_a_plan_is_shown_with_its_price(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*QUICK, "--samples", "300,9000,9000,9000,9000"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Site 0 (300 rows" in shown and "one per site" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--samples", "x"], "--samples must be a number"),
        (["--samples", "1,2"], "one entry per site"),
        (["--epsilon", "-1"], "above 0"),
        (["--C", "1e6"], "must not exceed"),
        (["--delta", "0", "--noise", "gaussian"], "never gives pure epsilon-DP"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert run([*QUICK, *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.parametrize(
    "colluding",
    [
        ["--effort", "quick"],
        ["--colluding", "1"],
        ["--effort", "quick", "--unit", "person"],
        ["--effort", "quick", "--whiten"],
    ],
)
def test_starter_files_are_valid_as_written(tmp_path, colluding, capsys) -> None:
    small = "plan --epsilon 1 --sites 3 --graph path --dimension 5".split()
    small += ["--samples", "900,1000,1100"]
    assert run([*small, *colluding, "--toml", str(tmp_path / "out")]) == 0
    job = read_job(tmp_path / "out" / "train.toml")
    masked, person = "--colluding" in colluding, "person" if "person" in colluding else None
    assert job.epsilon == 1.0 and len(job.sites) == 3 and job.colluding == (1 if masked else None)
    assert job.person == person
    assert len(job.schema_) == 4 and job.network().edges == ((0, 1), (1, 2))
    for i, name in enumerate(("site-0", "site-1", "site-2")):
        site = load_site(tmp_path / "out" / f"{name}.toml")
        assert (
            site.number == i and (site.job.method == "masked") == masked and site.file.budget.epsilon == 1.0
        )
        assert site.job.person == person and (site.job.whiten is None) == ("--whiten" not in colluding)
        if not masked:
            prepared = prepare_run(site)  # a real site would run it, within its budget
            facts = prepared.run_facts(simulated=False, where="network")
            assert prepared.forecast(facts, 1e-5).epsilon <= 1.0
        assert [entry.samples for entry in site.job.sites] == [900, 1000, 1100]
    capsys.readouterr()
    assert run([*small, *colluding, "--toml", str(tmp_path / "out")]) == 1
    assert "already has train.toml" in capsys.readouterr().err


def test_a_loss_has_the_loss_without_privacy_beside_it(capsys) -> None:
    small = "plan --epsilon 1 --samples 300 --sites 3 --dimension 3 --max-rounds 2".split()
    assert run(small) == 0
    shown = capsys.readouterr().out
    found = plan(epsilon=1.0, samples=300, graph=Graph.complete(3), dimension=3, max_rounds=2, baseline=True)
    assert found.baseline is not None and found.baseline <= min(tried.loss for tried in found.tried) + 0.01
    assert f"{found.baseline:.4f}" in shown and found.to_dict()["baseline"] == found.baseline
