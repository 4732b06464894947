"""`taciturn demo`: a table at one budget, a certificate that verifies, a report; Adult is not needed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from taciturn import Certificate
from taciturn.cli.app import run
from taciturn.errors import DataUnavailable
from taciturn.experiments.demo import tasks


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the demonstration prints where Adult cannot be had, and where it wrote."""
    out = tmp_path_factory.mktemp("demo")

    def nowhere(**_: object) -> None:
        raise DataUnavailable("tried, and not found")

    with pytest.MonkeyPatch.context() as patch, pytest.MonkeyPatch.context() as terminal:
        patch.setattr(tasks, "load_adult", nowhere)
        terminal.setenv("COLUMNS", "200")
        text = _printed(["demo", "--out", str(out)])
    return text, out


def _printed(arguments: list[str]) -> str:
    import contextlib
    import io

    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        assert run(arguments) == 0
    return buffer.getvalue()


def test_without_adult_it_says_so_and_goes_on(shown: tuple[str, Path]) -> None:
    assert shown[0].startswith("Adult was not found, nor could it be fetched")


def test_the_choice_is_shown_at_one_budget(shown: tuple[str, Path]) -> None:
    rows = re.findall(
        r"│ (no privacy|trust nobody|at most one curious site) *│ *\d+ │ *([\d.]+|no limit) ", shown[0]
    )
    assert [row[0] for row in rows] == ["no privacy", "trust nobody", "at most one curious site"]
    assert [row[1] for row in rows] == ["no limit", "4.00", "4.00"]
    accuracies = [float(number) for number in re.findall(r"([\d.]+) % │", shown[0])]
    assert len(accuracies) == 3 and min(accuracies) > 70


def test_the_certificate_verifies_and_its_statement_is_printed(shown: tuple[str, Path]) -> None:
    text, out = shown
    certificate = Certificate.from_json((out / "certificate.json").read_text("utf-8"))
    certificate.verify()
    assert 3.9 < certificate.epsilon <= 4.0 and certificate.run.colluding == 1
    assert "SIMULATED" in text and "if all collude" in text


def test_the_report_is_written_and_its_path_printed(shown: tuple[str, Path]) -> None:
    text, out = shown
    assert str(out / "report.html") in text
    assert "breast cancer at five sites" in (out / "report.html").read_text("utf-8")


def test_asked_for_adult_it_does_not_take_other_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def nowhere(**_: object) -> None:
        raise DataUnavailable("tried, and not found")

    monkeypatch.setattr(tasks, "load_adult", nowhere)
    assert run(["demo", "--data", "adult", "--out", str(tmp_path)]) == 1
    assert "not found" in capsys.readouterr().err
