"""Two sites that check each other until both report the expected lines."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from taciturn.cli.app import run
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.watch.checkup import neighbours
from taciturn.sites.watch.own import Finding

TRIES = 20


def check_both(
    first: Path,
    second: Path,
    capsys: pytest.CaptureFixture[str],
    here: Sequence[str],
    there: Sequence[str] = (),
    seconds: float = 2.0,
) -> tuple[str, str]:
    """What the command says at the first site, with its log, and what the second finds meanwhile.

    On a busy machine one check may be over before the other has begun: both go on until the first has said
    all of `here` in one go and the second has found all of `there`, or until it is no use.
    """
    met: list[Finding] = []
    ready, done = make_ready(load_site(second)), threading.Event()

    def check_again() -> None:
        while not done.is_set():
            met.extend(neighbours(ready, seconds))

    other = threading.Thread(target=check_again)
    other.start()
    try:
        for _ in range(TRIES):
            assert run(["site", "check", str(first), "--wait", str(2 * seconds)]) == 1
            said, found = "".join(capsys.readouterr()), " ".join(finding.text for finding in list(met))
            if all(words in said for words in here) and all(words in found for words in there):
                break
    finally:
        done.set()
        other.join()
    assert met and not any(finding.good for finding in met)
    return said, found
