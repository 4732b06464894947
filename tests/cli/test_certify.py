"""`taciturn certify`: the numbers of the design, and a certificate that does not add up."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from taciturn.cli.app import run

SETTINGS = [
    *("certify --C 1750 --samples 9044 --degree 2".split()),
    *("--penalty 0.5 --dimension 105 --rounds 100 --delta 1e-5".split()),
]
NORM = [*SETTINGS, "--noise", "norm", "--rate", "3"]


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, float | None]:
    assert run([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return dict(json.loads(captured.out))


def test_the_numbers_of_the_design(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*NORM, "--json"]) == 0
    assert capsys.readouterr().out == '{"paper": 64.9, "pure": 58.1, "epsilon": 2.97, "delta": 1e-05}\n'


def test_gaussian(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "gaussian.json"
    std = str(math.sqrt(105) / 3)
    found = figures(capsys, *SETTINGS, "--noise", "gaussian", "--std", std, "--out", str(file))
    assert found == {"paper": None, "pure": None, "epsilon": 2.3, "delta": 1e-05}
    assert json.loads(file.read_text())["epsilon"] == pytest.approx(2.292, abs=5e-4)


@pytest.mark.parametrize(
    ("extra", "name", "factor"),
    [
        (["--penalty-ratio", "1.05"], "pure", sum(1.05**-t for t in range(100)) / 100),
        (["--rate-ratio", "0.99"], "pure", None),
        (["--outputs", "3"], "pure", 3.0),
        (["--method", "dual"], "pure", 1.0),
        (["--method", "primal"], "pure", 1.0),
        (["--output-rate", "1e6", "--tol", "1e-9"], "pure", 1 + 100 * 2e-3 / 58.0495),
        (["--regularization", "0.1", "--sites", "5"], "pure", 1.0),
        (["--loss", "smooth-hinge"], "paper", (1.4 + 3) / (0.35 + 3)),
        (["--loss", "log-cosh"], "paper", (1.4 + 3) / (0.35 + 3)),
    ],
)
def test_every_option_reaches_the_bound(
    capsys: pytest.CaptureFixture[str], extra: list[str], name: str, factor: float | None
) -> None:
    plain, found = figures(capsys, *NORM), figures(capsys, *NORM, *extra)
    before, after = plain[name], found[name]
    assert before is not None and after is not None
    if factor is None:
        assert after < before
    else:
        assert after == pytest.approx(before * factor, rel=1e-2)


def test_a_theorem_that_does_not_apply_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert "paper_condition" not in figures(capsys, *NORM)
    assert figures(capsys, *NORM, "--dual-step", "0.7")["paper_condition"] is False
    assert run([*NORM, "--dual-step", "0.7"]) == 0
    assert "does not apply" in capsys.readouterr().out


def test_no_noise(capsys: pytest.CaptureFixture[str]) -> None:
    assert figures(capsys, *SETTINGS, "--noise", "none")["epsilon"] is None
    assert run([*SETTINGS, "--noise", "none"]) == 0
    assert "epsilon is infinite" in " ".join(capsys.readouterr().out.split())


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(NORM) == 0
    said = " ".join(capsys.readouterr().out.split())
    for needed in ("64.9", "58.1", "2.97", "PLANNED: no run took place", "1 in 100,000", "IDEALISED"):
        assert needed in said
    assert "SIMULATED" not in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["certify"], "missing options: --noise, --C"),
        (["certify", "x.json", "--samples", "3"], "leave out --samples"),
        (["certify", "x.json", "--loss", "log-cosh"], "leave out --loss"),
        ([*NORM, "--std-ratio", "2"], "--std-ratio has no effect with --noise norm"),
        ([*NORM, "--epsilon", "2"], "--epsilon needs --method masked"),
        ([*SETTINGS, "--noise", "none", "--method", "dual"], "--method has no effect with --noise none"),
        ([*NORM, "--std", "3"], "--std has no effect with --noise norm"),
        (["certify", "--method", "masked", "--tol", "1"], "a masked run does not use ADMM"),
        ([*SETTINGS, "--noise", "norm"], "missing options: --rate"),
        ([*NORM, "--delta", "2"], "`delta` must be strictly between"),
        ([*NORM, "--rate", "-3"], "`rate` must be above 0"),
        ([*NORM, "--samples", "0"], "`samples` must be at least 1"),
        ([*NORM, "--samples", "many"], "--samples"),
        ([*NORM, "--sites", "0"], "`sites` must be at least 1"),
        ([*NORM, "--output-rate", "1", "--output-std", "1"], "exclude each other"),
        ([*NORM, "--output-rate", "-1"], "`output_rate` must be above 0"),
        ([*SETTINGS, "--noise", "none", "--output-std", "1"], "this option needs --noise norm or gaussian"),
        ([*NORM, "--method", "primal", "--output-rate", "1"], "`output_noise` must be None"),
        ([*NORM, "--method", "dual", "--dual-step", "0.1"], "one constant penalty"),
        ([*NORM, "--penalty-ratio", "1e9"], "`penalty` must stay finite and above 0; got inf at t=36"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert said in " ".join(captured.err.split()) and captured.out == ""


def test_more_neighbours_than_sites_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--noise", "norm", "--C", "1750", "--samples", "9044", "--degree", "50", "--penalty", "0.5"]
    assert (
        run(["certify", *settings, "--rate", "3", "--dimension", "5", "--rounds", "1", "--sites", "2"]) == 2
    )
    assert "`degree` must be below the number of sites" in capsys.readouterr().err
