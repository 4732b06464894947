"""Progress of a fit is shown on a terminal, if requested, and nowhere else."""

from __future__ import annotations

import sys

import pytest

import taciturn as tt


class Terminal:
    """What stderr is to a person at a screen."""

    def __init__(self, real):
        self.real, self.written = real, ""

    def write(self, text):
        self.written += text
        return len(text)

    def isatty(self):
        return True

    def __getattr__(self, name):
        return getattr(self.real, name)


@pytest.mark.parametrize(("verbose", "shown"), [(True, True), (0, False)])
@pytest.mark.parametrize("options", [{"effort": "quick"}, {"colluding": 1}])
def test_a_bar_on_a_terminal(rows, monkeypatch, verbose, shown, options):
    X, y = rows
    screen = Terminal(sys.stderr)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    tt.PrivateLogisticRegression(random_state=0, max_rounds=3, sites=3, verbose=verbose, **options).fit(
        X[:300], y[:300]
    )
    assert ("rounds" in screen.written) == shown


def test_silent_in_a_pipe(rows, capsys):
    X, y = rows
    tt.PrivateLogisticRegression(random_state=0, effort="quick", max_rounds=3, verbose=True).fit(
        X[:300], y[:300]
    )
    assert capsys.readouterr() == ("", "")
