"""Machine code that is compiled once for all tests of a machine, before any test waits for it.

Sites that compile as they start, several at a time on a busy machine, outlast their neighbours' patience.
"""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path

import taciturn as tt
from support.problems import make_sites


def compile_kernels() -> None:
    """Load what a site needs, from the disk or by compiling; of several processes only one compiles."""
    problem = tt.Problem(make_sites(), C=20.0, regularization=0.5)
    penalty = tt.PenaltyPerturbation(0.5, 0.5, tt.NormNoise(rate=3.0))
    with open(Path(tempfile.gettempdir()) / "taciturn-test-kernels.lock", "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for method in (penalty, tt.MaskedDescent()):
            tt.simulate(problem, "ring", method, rounds=3, seed=0, progress=False)
