"""Every command of docs/howto/network.md: four hospitals, from the kit to describe, train and evaluate."""

from __future__ import annotations

import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from taciturn.cli.app import run
from taciturn.sites.trial.rehearsal import free_ports

pytestmark = [pytest.mark.process, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "network.md").read_text(encoding="utf-8")
RULES = re.search(r"```toml\n(budget = .*?)```", PAGE, flags=re.S).group(1)
SCRIPT = ROOT / "examples" / "heart_tables.py"


def run_all(folders, share):
    """`taciturn site run site.toml` in every folder at once."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "taciturn", "site", "run", "site.toml"],
            cwd=folder,
            env=os.environ | {"XDG_DATA_HOME": str(share / folder.name), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for folder in folders
    ]
    said = [process.communicate(timeout=400)[0] for process in started]
    assert [process.returncode for process in started] == [0] * len(folders), "\n".join(said)
    assert [text.count("at delta") for text in said] == [1] * len(folders), said[0]  # the result, once


def next_job(folder, name, state):
    """The next job in a folder whose site.toml names it."""
    text = (folder / "site.toml").read_text()
    text = re.sub(r'^job = ".*?"', f'job = "{name}.toml"', text, flags=re.M)
    (folder / "site.toml").write_text(re.sub(r'^state = ".*?"', f'state = "{state}"', text, flags=re.M))


def test_four_hospitals_describe_train_and_evaluate(tmp_path, monkeypatch):
    assert "python examples/heart_tables.py heart" in PAGE and "taciturn site run site.toml" in PAGE
    monkeypatch.chdir(tmp_path)
    example = runpy.run_path(str(SCRIPT))
    example["main"]("heart", free_ports(4))
    assert run(["site", "kit", "heart/describe.toml", "parties"]) == 0
    folders = [tmp_path / "parties" / name for name in example["HOSPITALS"]]
    for k, folder in enumerate(folders):
        shutil.copy(tmp_path / "heart" / f"{folder.name}.csv", folder / "rows.csv")
        text = re.sub(r"^budget = .*\n", lambda _: RULES, (folder / "site.toml").read_text(), flags=re.M)
        (folder / "site.toml").write_text(text)
        monkeypatch.chdir(folder)
        more = ["--new-authority"] if k == 0 else []
        assert run(["site", "keys", "site.toml", "--throw-away", "../authority", *more]) == 0

    run_all(folders, tmp_path / "share")
    results = [json.loads((folder / "state" / "result.json").read_text()) for folder in folders]
    assert all(one == results[0] for one in results)
    described = results[0]["answers"][0]
    assert described["units"] == 9200
    assert 50 < described["columns"]["age"]["mean"]["value"] < 58
    assert set(described["groups"]) == {"female", "male"}
    links = re.findall(r'href="([\w.]+)"', (folders[0] / "state" / "report.html").read_text())
    assert {"describe.html", "describe.csv", "describe.svg", "result.json"} <= set(links)
    assert all((folders[0] / "state" / link).exists() for link in links)

    for folder in folders:
        shutil.copy(tmp_path / "heart" / "train.toml", folder / "train.toml")
        next_job(folder, "train", "state-train")
    run_all(folders, tmp_path / "share")
    models = {(folder / "state-train" / "model.json").read_bytes() for folder in folders}
    assert len(models) == 1

    sha256 = hashlib.sha256(models.pop()).hexdigest()
    asked = (tmp_path / "heart" / "evaluate.toml").read_text().replace("SHA256", sha256)
    for folder in folders:
        shutil.copy(folder / "state-train" / "model.json", folder / "model.json")
        (folder / "evaluate.toml").write_text(asked)
        next_job(folder, "evaluate", "state-evaluate")
    run_all(folders, tmp_path / "share")
    (score,) = json.loads((folders[0] / "state-evaluate" / "result.json").read_text())["answers"]
    assert score["accuracy"]["value"] > 0.65 and score["auc"]["value"] > 0.7
    assert set(score["groups"]) == set(example["HOSPITALS"])
    assert run(["verify", str(folders[1] / "state-evaluate")]) == 0
