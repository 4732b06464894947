"""`taciturn demo`: a table at one budget, a certificate that verifies, a report; Adult is not needed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taciturn import Certificate
from taciturn.cli.app import run
from taciturn.core.errors import DataUnavailable
from taciturn.paper.demo import tasks
from taciturn.paper.demo.comparison import ALONE, CURVES, NO_PRIVACY, NOBODY, ONE_CURIOUS, compare
from taciturn.privacy.certificate.summary import five_lines


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


def test_without_adult_the_demo_uses_other_data_and_says_so(shown: tuple[str, Path]) -> None:
    assert shown[0].startswith("Adult was neither found nor downloaded")


def test_the_choices_are_shown_at_one_budget(shown: tuple[str, Path]) -> None:
    rows = re.findall(r"│ (\w[\w ,]*\w) *│ *([\w .]+) │ *[\w .]+ │ *[\d.]+ │ *([\d.]+) % │", shown[0])
    assert [row[0] for row in rows] == [NO_PRIVACY, ALONE, NOBODY, ONE_CURIOUS]
    assert [row[1].strip() for row in rows] == ["no limit", "nothing sent", "4.00", "4.00"]
    assert min(float(row[2]) for row in rows) > 70


def test_no_privacy_is_converged() -> None:
    task = tasks.breast_cancer()
    best = np.array(task.problem.optimum(tol=1e-6))
    first = next(compare(task))
    loss = np.logaddexp(0.0, -task.y_test * (task.X_test @ best)).mean()
    assert first.name == NO_PRIVACY and first.test_loss == pytest.approx(
        loss, rel=1e-3
    )  # sizes differ by a row


def test_the_certificate_verifies_and_is_shown_in_five_lines(shown: tuple[str, Path]) -> None:
    text, out = shown
    certificate = Certificate.from_json((out / "certificate.json").read_text("utf-8"))
    certificate.verify()
    assert 3.9 < certificate.epsilon <= 4.0 and certificate.run.colluding == 1
    lines = five_lines(certificate)
    assert len(lines) == 5 and all(line in text for line in lines) and "SIMULATED" in text


def test_the_report_and_the_terminal_agree(shown: tuple[str, Path]) -> None:
    text, out = shown
    page = (out / "report.html").read_text("utf-8")
    loss, accuracy = re.findall(r"curious site │ .* │ *([\d.]+) │ *([\d.]+) % │", text)[0]
    numbers = dict(re.findall(r'<dt>(.*?) on held-out rows</dt><dd>.*?<data value="([\d.]+)"', page))
    assert f"{float(numbers['Loss']):.3f}" == loss and f"{100 * float(numbers['Accuracy']):.1f}" == accuracy
    assert "data:image/png" in page and (out / "demo.png").stat().st_size > 10_000
    assert str(out / "report.html") in text and str(out / "demo.png") in text


def test_asked_for_adult_it_does_not_take_other_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def nowhere(**_: object) -> None:
        raise DataUnavailable("tried, and not found")

    monkeypatch.setattr(tasks, "load_adult", nowhere)
    assert run(["demo", "--data", "adult", "--out", str(tmp_path)]) == 1
    assert "not found" in capsys.readouterr().err


@pytest.mark.slow
def test_on_adult_a_private_model_with_curves_beats_the_linear_one_without_privacy(
    adult_files: object,
) -> None:
    task = replace(tasks.adult(), epsilons=(1.0,))
    found = {choice.name: choice for choice in compare(task)}
    assert found[CURVES].certificate is not None and found[CURVES].certificate.epsilon <= 1.0
    assert found[CURVES].test_loss < found[NO_PRIVACY].test_loss == pytest.approx(0.3265, abs=0.001)
    assert found[CURVES].test_loss < found[ONE_CURIOUS].test_loss < found[NOBODY].test_loss

    nobody = found[NOBODY].certificate
    assert nobody is not None and nobody.run.moments == 2 and nobody.epsilon <= 1.0
    assert found[NOBODY].test_loss < 0.38  # above 0.5 where long whitened rows are not shortened
