"""Rehearsals between real sites keep their pinned bits and certificates."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.seeded_rows import certified, digest
from support.seeded_runs import PINNED_REHEARSALS, PLAIN
from support.sitemasked import masked_network
from support.sitework import RING_OF_3, network, shards

COVERED = {"output_noise": {"kind": "gaussian", "std": 1e-3}}
KINDS = {
    "penalty": lambda folder, data: network(folder, RING_OF_3, data=data, site=COVERED),
    "masked": lambda folder, data: masked_network(folder, RING_OF_3, data=data),
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the hashes were taken with x86 instructions")
@pytest.mark.parametrize("kind", KINDS)
def test_rehearsals_keep_their_pinned_bits(kind: str, tmp_path: Path) -> None:
    data = [(np.trunc(1024 * X) / 1024, y) for X, y in shards(3, rows=100)]  # alike on every processor
    found = rehearse(KINDS[kind](tmp_path / "net", data))
    pinned = json.loads(PINNED_REHEARSALS.read_text())[kind]
    assert found == pinned, json.dumps(found)


def rehearse(paths: list[Path]) -> dict[str, Any]:
    """The model that all sites hold as a hash, and what each site is certified to cost its records."""
    command = [sys.executable, "-m", "taciturn", "site", "run"]
    running = [
        subprocess.Popen(
            [*command, str(path)],
            env=os.environ | PLAIN,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for path in paths
    ]
    try:
        told = [process.communicate(timeout=400)[0] for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert [process.returncode for process in running] == [0] * len(paths), "\n".join(told)
    states = [path.parent / "state" for path in paths]
    models = [json.loads((state / "model.json").read_text())["coef"] for state in states]
    certificates = [certified((state / "certificate.json").read_text()) for state in states]
    return {"models": [digest(model) for model in models], "certificates": certificates}
