"""Seeded runs leave the same bits behind as when they were last pinned.

That was when small sites came to be solved in machine code, and simulated noise to be drawn from a counter.

Bits depend on the processor's instructions, so the runs take place in a process that is held to those of any
x86 machine since 2013: another choice of kernels adds in another order.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PLAIN = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONPATH": f"{HERE.parent / 'src'}{os.pathsep}{HERE}",
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the hashes were taken with x86 instructions")
def test_seeded_runs_are_those_of_before() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "support" / "seeded_runs.py")],
        env=os.environ | PLAIN,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((HERE / "support" / "seeded_runs.json").read_text())
