"""`taciturn certify`: the numbers of the design, and a certificate that does not add up."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.example_run import run_facts, site_facts
from taciturn.canonical import canonical
from taciturn.cli.app import run
from taciturn.cli.certify import rounded
from taciturn.privacy.facts import Charge, SiteBudget
from taciturn.privacy.ledger.disk import SqliteLedger

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
    assert capsys.readouterr().out == '{"paper": 64.83, "pure": 58.05, "epsilon": 2.97, "delta": 1e-05}\n'


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
        assert after == pytest.approx(before * factor, rel=2e-3)


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
    for needed in ("64.83", "58.05", "2.97", "PLANNED: no run took place", "1 in 100,000", "IDEALISED"):
        assert needed in said
    assert "SIMULATED" not in said


# -- a file -----------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "run.json"
    assert run([*NORM, "--out", str(path)]) == 0
    capsys.readouterr()
    return path


def test_a_true_certificate(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert figures(capsys, "certify", str(file))["epsilon"] == 2.97
    assert run(["certify", str(file)]) == 0
    assert "Verified: every number" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"epsilon": 2.968', '"epsilon": 1.968', "`epsilon` is stated as 1.968"),
        ('"samples": 9044', '"samples": 90440', "is stated as"),
        ('"charged_rounds": 100', '"charged_rounds": 1', "is stated as"),
        ('"tol": 0.0', '"tol": 1e-9', "is stated as"),
        ('"clip": null', '"clip": 10.0', "is stated as"),
        ('"sha256": "', '"sha256": "0', "was changed after it was written"),
        ('"format"', '"formal"', "is not a certificate"),
        ("{", "", "is not a certificate"),
        ('"noise": "norm"', '"noise": "loud"', "`noise` must be one of"),
    ],
)
def test_a_false_certificate(
    file: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    assert run(["certify", str(file)]) == 1
    captured = capsys.readouterr()
    assert said in captured.err and captured.err.startswith("taciturn: ") and captured.err.count("\n") == 1
    assert captured.out == ""


def _doubled(text: str) -> str:
    return text.replace('"delta": 1e-05', '"delta": 1e-05, "delta": 1e-05', 1)


@pytest.mark.parametrize(
    ("tampered", "said"),
    [
        (lambda text: text.replace('"delta": 1e-05', '"delta": 0.001', 1), "`epsilon` is stated as"),
        (lambda text: text.replace('"delta": 1e-05', '"delta": 1e400', 1), "`delta`"),
        (lambda text: text.replace('"delta": 1e-05', '"delta": NaN', 1), "holds NaN"),
        (_doubled, "the same key twice"),
        (lambda text: text[: len(text) // 2], "not valid JSON"),
        (lambda text: "[" * 100_000, "not valid JSON"),
        (lambda text: '{"a":' * 100_000, "not valid JSON"),
        (
            lambda text: '{"format": "taciturn certificate 1", "x": ' + "9" * 5_000 + "}",
            "more than 18 digits",
        ),
        (lambda text: "[" + "1," * 5_000_000 + "1]", "its `format` must be"),
        (lambda text: text.replace('"rounds": 100', '"rounds": 90000000', 1), "sites times rounds"),
        (lambda text: "", "not valid JSON"),
    ],
)
def test_a_file_of_any_kind_is_refused_in_one_line(
    file: Path, capsys: pytest.CaptureFixture[str], tampered: Callable[[str], str], said: str
) -> None:
    text = file.read_text()
    assert tampered(text) != text
    file.write_text(tampered(text))
    assert run(["certify", str(file)]) == 1
    captured = capsys.readouterr()
    assert said in captured.err and captured.err.count("\n") == 1 and captured.out == ""


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (0, 1, 2), (0, 1, 2, 2)])
def test_rounds_in_another_order_or_number_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: tuple[int, ...]
) -> None:
    """A growing penalty: its table is another one after any such change."""
    path = tmp_path / "run.json"
    settings = [entry if entry != "100" else "4" for entry in NORM]
    assert run([*settings, "--penalty-ratio", "1.5", "--out", str(path)]) == 0
    capsys.readouterr()
    body = json.loads(path.read_text())
    table = body["sites"][0]["charged_eta"]
    body["tables"][table] = [body["tables"][table][k] for k in order]
    path.write_text(json.dumps(body))
    assert run(["certify", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("taciturn: ") and captured.err.count("\n") == 1


def test_texts_that_were_not_compared_are_not_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever names another version may word the file as he likes, not what is printed."""
    body = json.loads(file.read_text())
    body |= {"statement": "All is well.", "run": body["run"] | {"versions": {"taciturn": "0.0.1"}}}
    del body["sha256"]
    file.write_text(json.dumps(body | {"sha256": hashlib.sha256(canonical(body).encode()).hexdigest()}))
    assert run(["certify", str(file)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "All is well." not in shown and "the texts in it were not compared" in shown


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["certify", str(tmp_path / "none.json")]) == 1
    assert capsys.readouterr().err.endswith("none.json: No such file or directory\n")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    assert run(["certify", str(tmp_path / "binary.json")]) == 1
    assert "is not a certificate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["certify"], "missing: --noise, --C"),
        (["certify", "x.json", "--samples", "3"], "leave out --samples"),
        ([*NORM, "--std", "3"], "--std does not go with --noise norm"),
        ([*SETTINGS, "--noise", "norm"], "missing: --rate"),
        ([*NORM, "--delta", "2"], "`delta` must be strictly between"),
        ([*NORM, "--rate", "-3"], "`rate` must be above 0"),
        ([*NORM, "--samples", "0"], "`samples` must be at least 1"),
        ([*NORM, "--samples", "many"], "--samples"),
        ([*NORM, "--output-rate", "1", "--output-std", "1"], "exclude each other"),
        ([*NORM, "--output-rate", "-1"], "`output_rate` must be above 0"),
        ([*SETTINGS, "--noise", "none", "--output-std", "1"], "need --noise norm or gaussian"),
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


def test_a_ledger_is_certified_at_its_own_delta(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with SqliteLedger(tmp_path / "l.sqlite", run_facts(), site_facts(), SiteBudget(5.0, 1e-7)) as ledger:
        ledger.charge(Charge(0, 1, 0.5, 3.0))
    assert run(["certify", str(tmp_path / "l.sqlite"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["delta"] == 1e-7
    assert run(["certify", str(tmp_path / "l.sqlite"), "--json", "--delta", "1e-4"]) == 0
    assert json.loads(capsys.readouterr().out)["delta"] == 1e-4


@given(st.floats(1e-280, 1e280))
def test_a_printed_figure_is_never_below_the_truth(value: float) -> None:
    shown = rounded(value)
    assert shown is not None and value * (1 - 1e-14) <= shown <= value * 1.02 + 0.01
