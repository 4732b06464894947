"""Digests of what the compiled functions compute, to be the same on any processor and without a compiler.

`digests_elsewhere` computes them in a process of its own, under other environment variables.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np

import taciturn as tt
from support.hard_problems import LOSSES, Recipe
from taciturn.methods.programs.descent import Descent
from taciturn.methods.programs.descent_losses import BoundedLogistic
from taciturn.objective import LogCosh, Logistic, SmoothHinge, SolverState, minimise
from taciturn.objective.softmax import Softmax
from taciturn.privacy.noise import draw
from taciturn.rng import SeededStreams


def small_solves() -> str:
    """The minimisers of small sites: of each loss, with fewer rows than features, with more, and sparse."""
    digest = hashlib.sha256()
    for loss in LOSSES:
        for rows, csr in ((5, False), (12, False), (8, True)):
            recipe = Recipe(rows=rows, dimension=8, loss=loss, repeats=1, csr=csr)
            objective, linear, start = recipe.make()
            task = {"linear": linear, "start": start, "tol": 1e-8, "state": SolverState()}
            digest.update(minimise(objective, curvature=2.0, **task).f.tobytes())
    return digest.hexdigest()


def seeded_noise() -> str:
    """Vectors of both noises, of one entry and of several."""
    digest = hashlib.sha256()
    for noise in (tt.NormNoise(1.0), tt.GaussianNoise(1.0)):
        for d in (1, 8, 19):
            e = draw(noise, SeededStreams(3), "noise", 4, np.arange(3), np.full(3, 0.7), (2, d))
            digest.update(e.tobytes())
    return digest.hexdigest()


def public_descent() -> str:
    """The public half of masked descent, for every loss and both kinds of first sum."""
    digest = hashlib.sha256()
    rng = np.random.Generator(np.random.PCG64(7))
    for loss in (BoundedLogistic(), Logistic(), SmoothHinge(), LogCosh(), Softmax(3, True)):
        outputs = getattr(loss, "classes", 1)
        for full in (True, False):
            d, steps = 9, 6
            descent = Descent(loss, d, outputs, full, (1e-3,) * (steps + 1), 1e-4, 0.4)
            rows = rng.integers(-1000, 1000, size=(200, d))
            rows[:, -1] = 1638
            M = (rows.T @ rows) / (4096.0**2 * 200)  # of integers: exact
            first = (np.triu(M, 1) * 2**0.5 + np.diag(np.diag(M)))[np.triu_indices(d)]
            if not full:
                first = np.concatenate([M[-1, :-1] / 0.4, np.diag(M)[:-1]])
            state = descent.advance(descent.start(2), np.stack([first, 1.25 * first]))
            for _ in range(steps):
                g = rng.integers(-(2**40), 2**40, size=(2, outputs * d)) / 2.0**41
                state = descent.advance(state, g)
                for array in (state.x, state.y, state.f):
                    digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def digests_elsewhere(*names: str, **environment: str) -> dict[str, str]:
    """Digests by name, from a process with these environment variables."""
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-W", "error", __file__, *names],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"} | environment,
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    return dict(line.split() for line in done.stdout.splitlines())


DIGESTS = {"solves": small_solves, "noise": seeded_noise, "descent": public_descent}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(name, DIGESTS[name]())
