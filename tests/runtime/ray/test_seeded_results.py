"""Seeded runs on a cluster leave the bits behind that are pinned for the same runs in one process."""

from __future__ import annotations

import json
import platform

import pytest

from support.seeded_runs import PINNED, run_plainly
from support.seeded_simulations import ON_RAY


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the hashes were taken with x86 instructions")
def test_seeded_runs_on_a_cluster_are_those_of_one_process(two_nodes: str) -> None:
    pinned = json.loads(PINNED.read_text())["runs"]
    names = [f"{name}, {what}" for what in ("vectors", "certified") for name in ON_RAY]
    assert run_plainly("ray", two_nodes) == {name: pinned[name] for name in names}
