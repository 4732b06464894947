"""A signal stops a command, and never interrupts its cleanup."""

from __future__ import annotations

import os
import signal
import time

import pytest
import typer

from taciturn.cli.sites import logs as stopping
from taciturn.core.errors import ExitCode


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, ExitCode.DONE), (signal.SIGINT, ExitCode.INTERRUPTED)]
)
def test_cleanup_is_not_interrupted_by_repeated_stop_signals(monkeypatch, number, code):
    monkeypatch.setattr(stopping, "AGAIN", 0.01)
    before, steps = signal.getsignal(number), []
    with pytest.raises(typer.Exit) as left, stopping.until_stopped():
        try:
            os.kill(os.getpid(), number)
            time.sleep(60)
        finally:
            for _ in range(5):
                os.kill(os.getpid(), number)
                time.sleep(0.02)
                steps.append(1)
            try:
                raise ValueError("a failure while it cleans up")
            except ValueError:
                time.sleep(0.05)
                steps.append(2)
    assert left.value.exit_code == code and steps == [1, 1, 1, 1, 1, 2]
    assert signal.getsignal(number) is before and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_swallowed_stop_signal_is_raised_again(monkeypatch):
    monkeypatch.setattr(stopping, "AGAIN", 0.01)
    swallowed = []
    with pytest.raises(typer.Exit) as left, stopping.until_stopped():
        for _ in range(3):
            try:
                if not swallowed:
                    os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(60)
            except stopping.Terminated:
                swallowed.append(1)
        time.sleep(60)
    assert left.value.exit_code == ExitCode.DONE and len(swallowed) == 3


def test_nothing_is_written_unless_requested():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)]
    with stopping.until_stopped():
        pass
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)] == before
