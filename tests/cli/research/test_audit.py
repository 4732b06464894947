"""`taciturn audit` as a user meets it."""

from __future__ import annotations

import json

import pytest

from taciturn.cli.app import run
from taciturn.privacy.noise import GaussianNoise


def test_it_prints_measured_beside_certified(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "--runs", "2000", "--seed", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] and report["simulated"]
    for case in report["cases"]:
        assert 0 <= case["measured_epsilon"] <= case["certified_epsilon"]


def test_a_leak_is_shown_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = GaussianNoise.sample
    monkeypatch.setattr(GaussianNoise, "sample", lambda *arguments: 0.2 * sample(*arguments))
    assert run(["audit", "--runs", "2000", "--seed", "1"]) == 1
    shown = capsys.readouterr().out
    assert "FAILED: " in " ".join(shown.split())


def test_too_few_runs_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "--runs", "5"]) == 2
    assert "runs" in capsys.readouterr().err
