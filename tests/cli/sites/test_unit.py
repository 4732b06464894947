"""The systemd unit of a site: no restart after permanent failures, and a tight sandbox."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.sitework import network
from taciturn.cli.app import run
from taciturn.core.errors import NOT_AGAIN, ExitCode

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "deploy.md").read_text(encoding="utf-8")
RESTARTED = {ExitCode.FAILED, ExitCode.NEIGHBOUR, ExitCode.INTERRUPTED}


@pytest.fixture
def printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = network(tmp_path)[0]
    assert run(["site", "unit", str(path)]) == 0
    captured = capsys.readouterr()
    assert f"first create the folder {path.parent / 'state'} for taciturn" in captured.err
    return captured.out


def test_unit_can_create_the_status_socket(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = network(tmp_path)[0]
    path.write_text('watch = "unix:run/site.sock"\n' + path.read_text())
    assert run(["site", "unit", str(path)]) == 0
    places = re.findall(r"ReadWritePaths=(.*)", capsys.readouterr().out)[0].split()
    assert places == [str(path.parent / "state"), str(path.parent / "run")]


def test_unit_restarts_only_after_transient_failures(printed: str) -> None:
    prevented = {int(code) for code in re.findall(r"RestartPreventExitStatus=(.*)", printed)[0].split()}
    assert prevented == set(NOT_AGAIN) and "Restart=on-failure" in printed
    assert set(ExitCode) - prevented - RESTARTED == {ExitCode.DONE}


@pytest.mark.process
def test_systemd_security_score_is_low(printed: str, tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is not installed")
    file = tmp_path / "taciturn-trial.service"
    file.write_text(printed)
    words = [tool, "security", "--offline=yes", "--no-pager", "--threshold=40", str(file)]
    found = subprocess.run(words, capture_output=True, text=True)
    if "nknown" in found.stderr or "unrecognized" in found.stderr:
        pytest.skip("this systemd-analyze cannot judge a file: systemd 250 or later does")
    level = float(re.findall(r"exposure level for \S+: (\d+\.\d)", found.stdout)[0])
    assert found.returncode == 0 and level < 4, found.stdout


def test_path_that_systemd_would_interpret_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = network(tmp_path / "a b")[0]
    assert run(["site", "unit", str(path)]) == 1
    assert "a systemd unit cannot contain" in capsys.readouterr().err


def test_the_page_has_one_table_of_all_codes_and_the_unit_as_it_is_printed(printed: str) -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| (yes|no) \|$", PAGE, flags=re.M)
    assert [int(code) for code, *_ in rows] == list(ExitCode)
    again = {int(code) for code, _, helps in rows if helps == "yes"}
    assert again == RESTARTED
    assert set(re.findall(r"^(\w+)=", PAGE, flags=re.M)) == set(re.findall(r"^(\w+)=", printed, flags=re.M))
