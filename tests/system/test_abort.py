"""A solve that gives up is a release: charged once, drawn once, however often the site is restarted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_twelve_restarts_of_an_aborted_round_draw_it_once_and_charge_it(tmp_path):
    """Before, each restart drew fresh noise for the same round and charged nothing: a free bit each time."""
    path = {"PYTHONPATH": os.pathsep.join([str(HERE.parent), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, str(HERE / "aborting_site.py"), str(tmp_path), "3", "12"],
        capture_output=True,
        text=True,
        env=os.environ | path,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["charged"] == [1, 2, 3] and seen["aborted"]
    assert sum(t == "3" and purpose == "noise" for t, purpose in seen["draws"]) == 1
    assert "NotConverged" in seen["told"][0] and "round 3" in seen["told"][0]
    assert all("never drawn again" in line for line in seen["told"])
    assert not any("reached" in line for line in seen["told"])
