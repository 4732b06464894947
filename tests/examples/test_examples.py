"""The examples run, and say what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from taciturn.errors import DataUnavailable

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def main_of(name: str):
    return runpy.run_path(str(EXAMPLES / name))["main"]


def test_five_hospitals(tmp_path, capsys, adult_files):
    try:
        accuracy = main_of("five_hospitals.py")(tmp_path)
    except DataUnavailable as reason:
        pytest.skip(str(reason))
    assert accuracy > 0.6 and (tmp_path / "report.html").exists() and (tmp_path / "certificate.json").exists()
    assert "epsilon 1.000" in capsys.readouterr().out


def test_uneven_banks(capsys, adult_files):
    try:
        found = main_of("uneven_banks.py")()
    except DataUnavailable as reason:
        pytest.skip(str(reason))
    assert len(found) == 3 and min(found.values()) > 0.77
    assert "sets the price" in capsys.readouterr().out


def test_regression(capsys):
    assert main_of("regression.py")() < 2.0
    assert "not private" in capsys.readouterr().out


def test_every_example_is_tested_and_listed():
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"five_hospitals.py", "uneven_banks.py", "regression.py"}
    assert all(name in (EXAMPLES / "README.md").read_text(encoding="utf-8") for name in names)
