"""`taciturn attack` as a user meets it."""

from __future__ import annotations

import json

import pytest

from taciturn.cli.app import run

SMALL = "attack --samples 30 --sites 3 --dimension 12 --rounds 5".split()


def test_without_noise_everything_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    last = {row["observer"]: row["cosine"] for row in found["table"]}
    assert last["known"] > 0.999 and last["geometric"] > 0.8


def test_the_table_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--rate", "3"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "How well an observer reconstructs one record" in shown
        and "a random guess of the record has an absolute cosine" in shown
    )


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--penalty", "-1"]) == 2
    assert "above 0" in " ".join(capsys.readouterr().err.replace("│", " ").split())
