"""`taciturn train` under kill -9: the cost is on record, and a rerun never spends it twice silently."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from taciturn.cli.app import run
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.ledger.disk import SqliteLedger

CLASSES = [f"c{k}" for k in range(40)]  # forty models, all of them charged before the first

JOB = f"""
format = "taciturn-training/1"
name = "crash"
epsilon = 2.0
max_rounds = 2
noise = "gaussian"
effort = "quick"
[label]
column = "y"
classes = {json.dumps(CLASSES)}
[[sites]]
name = "north"
data = "north.csv"
[[sites]]
name = "south"
data = "south.csv"
[schema]
fields = [{", ".join(f'{{ name = "x{k}", low = -1, high = 1 }}' for k in range(6))}]
"""


HELD = """
import sys, time
from pathlib import Path
from taciturn.cli.app import run
from taciturn.privacy.ledger.disk import SqliteLedger

job, charged = sys.argv[1:]
real = SqliteLedger.charge_round

def held(ledger, charges):
    real(ledger, charges)
    Path(charged).touch()
    time.sleep(3600)

SqliteLedger.charge_round = held
run(["train", job])
"""
"""A run that goes no further once its ledger holds a charge."""


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> Path:
    """What is left of a run that was killed once its ledger held a charge."""
    folder = tmp_path_factory.mktemp("crash")
    rng = np.random.default_rng(0)
    (folder / "job.toml").write_text(JOB)
    for name in ("north", "south"):
        lines = ["x0,x1,x2,x3,x4,x5,y"]
        X, y = rng.uniform(-1, 1, (400, 6)), rng.integers(0, len(CLASSES), 400)
        lines += [
            ",".join([*(f"{cell:.6f}" for cell in row), CLASSES[k]]) for row, k in zip(X, y, strict=True)
        ]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-c", HELD, str(folder / "job.toml"), str(folder / "charged")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while process.poll() is None and not (folder / "charged").exists():
            time.sleep(0.01)
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGKILL)
    return folder


@pytest.fixture
def crashed(killed, tmp_path) -> Path:
    """The same, for one test to go on from."""
    return Path(shutil.copytree(killed, tmp_path / "crash"))


def test_what_was_spent_is_on_record_and_nothing_is_half_written(crashed, capsys):
    left = {path.name for path in (crashed / "run").iterdir()}
    assert left - {"ledger.sqlite-journal"} == {"ledger.sqlite", "ledger.sqlite.lock"}
    with SqliteLedger(crashed / "run" / "ledger.sqlite", readonly=True) as ledger:
        certificate = Certificate.from_ledger(ledger, delta=1e-5)
        assert ledger.run.outputs == 40 and not ledger.run.simulated
    assert 0 < certificate.epsilon <= 2.0 and [site.name for site in certificate.sites] == ["north", "south"]
    assert run(["verify", str(crashed / "run" / "ledger.sqlite")]) == 0
    assert "Verified" in capsys.readouterr().out


def test_next_run_is_refused_and_states_the_cost_of_repeating(crashed, capsys):
    before = (crashed / "run" / "ledger.sqlite").read_bytes()
    assert run(["train", str(crashed / "job.toml")]) == 1
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and said.out == ""
    assert "cut off in round" in said.err and "epsilon = " in said.err and "`--again`" in said.err
    assert (crashed / "run" / "ledger.sqlite").read_bytes() == before


def test_option_again_keeps_the_record_and_the_certificate_mentions_it(crashed, capsys):
    job = crashed / "job.toml"
    job.write_text(JOB.replace(json.dumps(CLASSES), '["c0", "c1"]'))  # two classes: this one is quick
    assert run(["train", str(job), "--again", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert any("cut off in round" in mark and "comes in addition" in mark for mark in facts["marks"])
    names = {path.name for path in (crashed / "run").iterdir()}
    assert {"ledger-1.sqlite", "ledger.sqlite", "model.json", "certificate.json"} <= names
    certificate = Certificate.from_json((crashed / "run" / "certificate.json").read_text())
    certificate.verify()
    assert "comes in addition" in certificate.statement() and certificate.head is not None
    with SqliteLedger(crashed / "run" / "ledger.sqlite", at_least=certificate.head, readonly=True) as ledger:
        assert ledger.head == certificate.head
    assert run(["train", str(job), "--again"]) == 1, "a run that came to its end is never run over"
    assert "needs a new folder" in capsys.readouterr().err


def test_a_run_that_is_still_going_is_left_alone(crashed, tmp_path, capsys):
    with SqliteLedger(crashed / "run" / "ledger.sqlite", readonly=True) as old:
        facts = old.run, old.sites
    (tmp_path / "out").mkdir()
    with SqliteLedger(tmp_path / "out" / "ledger.sqlite", *facts):
        assert run(["train", str(crashed / "job.toml"), "--out", str(tmp_path / "out"), "--again"]) == 1
    assert "in use by another process" in capsys.readouterr().err
