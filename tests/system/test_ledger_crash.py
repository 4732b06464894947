"""kill -9 at any point between charge and release: no charge is lost, no round is drawn twice."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import taciturn as tt

SCRIPT = Path(__file__).with_name("crashing_site.py")
ROUNDS = 4

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")


def lives(folder: Path, *how: str) -> list[dict[str, Any]]:
    environment = os.environ | {
        "PYTHONPATH": str(Path(tt.__file__).parents[1]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *how], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def violations(run: dict[str, Any]) -> list[str]:
    """What must never happen, wherever the site died."""
    found, before = [], 0
    for after in run["after"]:
        charged, seen = after["charged"], after["seen"]
        if len(charged) < before:
            found.append("a charge was lost")
        before = len(charged)
        if charged != list(range(1, len(charged) + 1)):
            found.append("a round was charged twice or skipped")
        if any(t not in charged for t, _ in seen):
            found.append("a release was free")
        if len({t for t, _ in seen}) < len({(t, frame) for t, frame in seen}):
            found.append("a round was released twice with different bytes")
    return found


def test_killed_at_every_point_of_every_round(tmp_path: Path) -> None:
    runs = lives(tmp_path, "points")
    assert len(runs) == ROUNDS * 5
    for run in runs:
        assert run["ends"] == ["SIGKILL", "exit 0"]
        assert violations(run) == []
        assert run["after"][-1]["charged"] == list(range(1, ROUNDS + 1))
        assert {t for t, _ in run["after"][-1]["seen"]} == set(range(1, ROUNDS + 1))
    charged = [len(run["after"][0]["charged"]) for run in runs]
    seen = [len({t for t, _ in run["after"][0]["seen"]}) for run in runs]
    assert charged == sorted(charged)
    assert any(c > s for c, s in zip(charged, seen, strict=True))  # died between charge and release
    assert any(c == s > 0 for c, s in zip(charged, seen, strict=True))  # died between release and the next


def test_killed_at_random_until_done(tmp_path: Path) -> None:
    (run,) = lives(tmp_path, "random", str(secrets.randbits(32)))
    assert run["ends"].count("SIGKILL") >= 5
    assert violations(run) == []
    assert run["after"][-1]["charged"] == list(range(1, ROUNDS + 1))


def test_a_site_that_releases_first_is_caught(tmp_path: Path) -> None:
    found = {problem for run in lives(tmp_path, "careless") for problem in violations(run)}
    assert "a release was free" in found
    assert "a round was released twice with different bytes" in found
