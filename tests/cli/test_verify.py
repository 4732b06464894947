"""`taciturn verify`: certificates that add up, and files that do not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.example_run import run_facts, site_facts
from taciturn.cli.app import run
from taciturn.cli.verify import rounded
from taciturn.core.canonical import canonical
from taciturn.privacy.facts import Charge, SiteBudget
from taciturn.privacy.ledger.disk import SqliteLedger

NORM = (
    "certify --C 1750 --samples 9044 --degree 2 --penalty 0.5 --dimension 105 --rounds 100 --delta 1e-5 "
    "--noise norm --rate 3"
).split()


@pytest.fixture
def file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "run.json"
    assert run([*NORM, "--out", str(path)]) == 0
    capsys.readouterr()
    return path


def test_valid_certificate_is_accepted(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(file), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["epsilon"] == 2.97 and captured.err == ""
    assert run(["verify", str(file)]) == 0
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
def test_forged_certificate_is_rejected(
    file: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    assert run(["verify", str(file)]) == 1
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
        (lambda text: text.replace('"delta": 1e-05', '"delta": NaN', 1), "contains NaN"),
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
    assert run(["verify", str(file)]) == 1
    captured = capsys.readouterr()
    assert said in captured.err and captured.err.count("\n") == 1 and captured.out == ""


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (0, 1, 2), (0, 1, 2, 2)])
def test_reordered_or_missing_rounds_are_detected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: tuple[int, ...]
) -> None:
    """With a growing penalty, each such change alters the table."""
    path = tmp_path / "run.json"
    settings = [entry if entry != "100" else "4" for entry in NORM]
    assert run([*settings, "--penalty-ratio", "1.5", "--out", str(path)]) == 0
    capsys.readouterr()
    body = json.loads(path.read_text())
    table = body["sites"][0]["charged_eta"]
    body["tables"][table] = [body["tables"][table][k] for k in order]
    path.write_text(json.dumps(body))
    assert run(["verify", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("taciturn: ") and captured.err.count("\n") == 1


def test_unverified_texts_of_another_version_are_not_shown(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The author of a file of another version chooses its wording, but not what `verify` prints."""
    body = json.loads(file.read_text())
    body |= {"statement": "All is well.", "run": body["run"] | {"versions": {"taciturn": "0.0.1"}}}
    del body["sha256"]
    file.write_text(json.dumps(body | {"sha256": hashlib.sha256(canonical(body).encode()).hexdigest()}))
    assert run(["verify", str(file)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "All is well." not in shown and "The texts in the file were not compared" in shown


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tmp_path / "none.json")]) == 1
    assert capsys.readouterr().err.endswith("none.json: No such file or directory\n")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    assert run(["verify", str(tmp_path / "binary.json")]) == 1
    assert "is not a certificate" in capsys.readouterr().err


def test_certify_still_verifies_a_file_and_says_which_command_does(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["certify", str(file)]) == 0
    shown = capsys.readouterr()
    assert "Verified: every number" in shown.out and "`taciturn verify`" in shown.out and shown.err == ""
    assert run(["certify", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] == 2.97


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("run.json", ["--delta", "1e-3"], "--delta is only for a ledger"),
        ("run.json", ["--authority", "a.pem"], "--authority is only for files that a site signed"),
        ("proof-1.json", [], "give --authority, the certificate of the network's authority"),
        ("statement.json", ["--card", "card.md", "--authority", "a.pem"], "--card has no effect"),
        ("statement.json", ["--json", "--authority", "a.pem"], "--json has no effect"),
    ],
)
def test_options_that_do_not_fit_the_file_are_refused(
    file: Path, capsys: pytest.CaptureFixture[str], name: str, options: list[str], said: str
) -> None:
    assert run(["verify", str(file.parent / name), *options]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_ledger_is_certified_at_its_own_delta(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with SqliteLedger(tmp_path / "l.sqlite", run_facts(), site_facts(), SiteBudget(5.0, 1e-7)) as ledger:
        ledger.charge(Charge(0, 1, 0.5, 3.0))
    assert run(["verify", str(tmp_path / "l.sqlite"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["delta"] == 1e-7
    assert run(["verify", str(tmp_path / "l.sqlite"), "--json", "--delta", "1e-4"]) == 0
    assert json.loads(capsys.readouterr().out)["delta"] == 1e-4


@given(st.floats(1e-280, 1e280))
def test_a_printed_figure_is_never_below_the_truth(value: float) -> None:
    shown = rounded(value)
    assert shown is not None and value * (1 - 1e-14) <= shown <= value * 1.02 + 0.01
