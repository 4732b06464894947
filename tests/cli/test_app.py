"""The command line as a whole: exit codes, one line for an error."""

from __future__ import annotations

import subprocess
import sys

import pytest

import taciturn as tt
from taciturn.cli.app import app, run
from taciturn.core.errors import ParameterError


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"taciturn {tt.__version__}\n"


def test_wrong_usage_is_2(capsys):
    assert run(["no-such-command"]) == 2
    assert "no-such-command" in capsys.readouterr().err


@pytest.fixture
def failing():
    def fail() -> None:
        raise ParameterError("`penalty` must be above 0; got -1.")

    app.command("fail")(fail)
    yield
    app.registered_commands.pop()


def test_an_error_is_one_line_and_1(failing, capsys):
    assert run(["fail"]) == 1
    captured = capsys.readouterr()
    assert captured.err == "taciturn: `penalty` must be above 0; got -1.\n" and captured.out == ""


def test_debug_shows_the_traceback(failing):
    with pytest.raises(ParameterError):
        run(["fail", "--debug"])


@pytest.mark.process
def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "taciturn", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"taciturn {tt.__version__}\n"


def test_an_interrupt_before_the_command_has_begun_ends_the_same_way(monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("taciturn.cli.app._commands", stop)
    assert run(["data", "adult"]) == 130
    assert capsys.readouterr().err == "taciturn: stopped.\n"


def test_an_interrupted_command_reports_it(monkeypatch, capsys):
    from taciturn.cli import data

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(data.json, "dumps", stop)
    monkeypatch.setattr("taciturn.data.load_adult", stop)
    assert run(["data", "adult", "--json"]) == 130
    assert capsys.readouterr().err == "taciturn: stopped.\n"
