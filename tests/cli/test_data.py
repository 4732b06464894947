from __future__ import annotations

import json
from pathlib import Path

import pytest

from taciturn.cli.app import run
from taciturn.data import Dataset
from taciturn.data.datasets.adult import ADULT


def test_it_says_what_was_found(adult: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "adult"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "adult: 45222 rows, 105 features, 24.8% positive"
    assert lines[1].startswith("found in ") and lines[1].endswith(ADULT.licence)
    assert lines[2] == f"adult.data: SHA-256 {ADULT.sha256['adult.data']}, verified"
    assert lines[3] == f"adult.test: SHA-256 {ADULT.sha256['adult.test']}, verified"


def test_it_says_so_in_json(adult: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "adult", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["features"], facts["positive"]) == (45222, 105, 11208)
    assert facts["sha256"] == ADULT.sha256


def test_missing_dataset_exits_with_1_and_lists_the_places_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TACITURN_DATA", raising=False)
    monkeypatch.setenv("TACITURN_CACHE", str(tmp_path))
    assert run(["data", "adult", "--offline"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("taciturn: the files of `adult` (adult.data, adult.test) were not found.")
    assert "  $TACITURN_DATA: not set\n" in captured.err


def test_unknown_dataset_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "iris"]) == 2
    assert "adult" in capsys.readouterr().err
