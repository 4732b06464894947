"""The files of a run fit together, or one line says which of them does not."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from taciturn.cli.app import run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run, one of the same job, and one of another."""
    home = tmp_path_factory.mktemp("verify")
    assert run(["init", str(home / "play")]) == 0
    job = home / "play" / "job.toml"
    text = 'effort = "quick"\nmax_rounds = 3\n' + job.read_text()
    for name in ("one", "same", "two"):
        job.write_text(text.replace("epsilon = 1.0", "epsilon = 0.9") if name == "two" else text)
        assert run(["train", str(job), "--out", str(home / name)]) == 0
    return home


@pytest.fixture
def copied(runs, tmp_path):
    shutil.copytree(runs / "one", tmp_path / "run")
    return tmp_path / "run"


def test_a_run_as_it_was_left(copied, capsys):
    assert run(["certify", str(copied)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "ok certificate.json" in said and "ok ledger.sqlite" in said
    assert "is the average of what trace.npz says was released last" in said


def _edit(path, key, change):
    entries = json.loads(path.read_text())
    entries[key] = change(entries[key])
    path.write_text(json.dumps(entries))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda home, run: shutil.copy(home / "two/model.json", run), "is the model of another run"),
        (lambda home, run: shutil.copy(home / "same/model.json", run), "was changed, or is of another run"),
        (lambda home, run: shutil.copy(home / "two/ledger.sqlite", run), "the ledger of another run"),
        (lambda home, run: shutil.copy(home / "two/trace.npz", run), "not the average of what trace.npz"),
        (
            lambda home, run: _edit(run / "certificate.json", "epsilon", lambda e: e / 2),
            "`epsilon` is stated",
        ),
        (lambda home, run: _edit(run / "model.json", "intercept", lambda i: [i[0] + 1e-6]), "was changed"),
        (lambda home, run: (run / "ledger.sqlite").unlink(), "is missing"),
    ],
)
def test_whatever_was_exchanged_or_edited_is_named(runs, copied, capsys, spoil, words):
    spoil(runs, copied)
    assert run(["certify", str(copied)]) == 1
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1


def test_a_certificate_and_a_model_of_another_run_do_not_fit_the_ledger(runs, copied, capsys):
    for name in ("certificate.json", "model.json", "trace.npz"):
        shutil.copy(runs / "two" / name, copied)
    assert run(["certify", str(copied)]) == 1
    assert "the ledger of another run" in capsys.readouterr().err


def test_documents_for_others(copied, tmp_path, capsys):
    yaml, card = tmp_path / "entry.yaml", tmp_path / "card.md"
    file = str(copied / "certificate.json")
    assert run(["certify", file, "--registry", str(yaml), "--card", str(card)]) == 0
    assert "readmitted" in card.read_text() and "north" in yaml.read_text()
    assert run(["certify", str(copied), "--card", str(tmp_path / "no" / "card.md")]) == 1
    assert "must be in a folder that exists" in capsys.readouterr().err


def test_the_weights_of_the_sites_travel_with_the_model(runs):
    model = json.loads((runs / "one" / "model.json").read_text())
    assert np.sum(model["run"]["weights"]) > 0 and len(model["run"]["weights"]) == 2
