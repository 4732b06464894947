"""The files of a run fit together, or one line names the file that does not."""

from __future__ import annotations

import hashlib
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


def test_unchanged_run_folder_verifies(copied, capsys):
    assert run(["verify", str(copied)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "ok certificate.json" in said and "ok ledger.sqlite" in said
    assert "is the average of the last releases in trace.npz" in said


def _damage(path):
    """Change many bytes in the middle of a file."""
    content = path.read_bytes()
    path.write_bytes(content[:200] + bytes(byte ^ 0xFF for byte in content[200:400]) + content[400:])


def _edit(path, key, change):
    entries = json.loads(path.read_text())
    entries[key] = change(entries[key])
    path.write_text(json.dumps(entries))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda home, run: shutil.copy(home / "two/model.json", run), "belongs to another run"),
        (lambda home, run: shutil.copy(home / "same/model.json", run), "belongs to another run"),
        (lambda home, run: shutil.copy(home / "two/ledger.sqlite", run), "belongs to another run"),
        (lambda home, run: shutil.copy(home / "two/trace.npz", run), "not the average of the releases"),
        (lambda home, run: _damage(run / "trace.npz"), "trace.npz cannot be read"),
        (
            lambda home, run: _edit(run / "certificate.json", "epsilon", lambda e: e / 2),
            "`epsilon` is stated",
        ),
        (lambda home, run: _edit(run / "model.json", "intercept", lambda i: [i[0] + 1e-6]), "was changed"),
        (lambda home, run: (run / "ledger.sqlite").unlink(), "is missing"),
    ],
)
def test_exchanged_or_edited_file_is_named(runs, copied, capsys, spoil, words):
    spoil(runs, copied)
    assert run(["verify", str(copied)]) == 1
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1


def _write_model(run, certificate, *, coef=None):
    """Another model.json, which needs no trace: coefficients that nobody released, or another certificate."""
    path = run / "model.json"
    entries = json.loads(path.read_text())
    entries["certificate"] = certificate
    entries["run"].pop("weights")
    if coef is not None:
        entries["coef"] = [[coef] * len(row) for row in entries["coef"]]
    path.write_text(json.dumps(entries))


@pytest.mark.parametrize("certificate", ["embedded", "of another run", "hash", "none"])
def test_replaced_model_file_is_detected(runs, copied, capsys, certificate):
    """All coefficients are 9; the file may contain a certificate, name the one beside it, or name none."""
    given = {
        "embedded": lambda: json.loads((copied / "certificate.json").read_text()),
        "of another run": lambda: json.loads((runs / "two" / "certificate.json").read_text()),
        "hash": lambda: hashlib.sha256((copied / "certificate.json").read_bytes()).hexdigest(),
        "none": lambda: None,
    }
    _write_model(copied, given[certificate](), coef=9.0)
    assert run(["certify", str(copied)]) == 1
    said = capsys.readouterr().err
    assert "model.json" in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("loss", lambda _: "smooth-hinge"),
        ("run", lambda entries: {**entries, "rounds": 1}),
        ("simulated", lambda _: True),
    ],
)
def test_loss_rounds_and_noise_of_a_model_are_those_of_its_certificate(copied, capsys, key, change):
    _edit(copied / "model.json", key, change)
    assert run(["certify", str(copied)]) == 1
    word = "rounds" if key == "run" else key
    assert f"`{word}` is" in capsys.readouterr().err


def test_a_certificate_and_a_model_of_another_run_do_not_fit_the_ledger(runs, copied, capsys):
    for name in ("certificate.json", "model.json", "trace.npz"):
        shutil.copy(runs / "two" / name, copied)
    assert run(["verify", str(copied)]) == 1
    assert "belongs to another run" in capsys.readouterr().err


def test_model_card_and_registry_entry_are_written(copied, tmp_path, capsys):
    yaml, card = tmp_path / "entry.yaml", tmp_path / "card.md"
    file = str(copied / "certificate.json")
    assert run(["verify", file, "--registry", str(yaml), "--card", str(card)]) == 0
    assert "readmitted" in card.read_text() and "north" in yaml.read_text()
    assert run(["verify", str(copied), "--card", str(tmp_path / "no" / "card.md")]) == 1
    assert "must be in an existing folder" in capsys.readouterr().err


def test_the_weights_of_the_sites_travel_with_the_model(runs):
    model = json.loads((runs / "one" / "model.json").read_text())
    assert np.sum(model["run"]["weights"]) > 0 and len(model["run"]["weights"]) == 2
