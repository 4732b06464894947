"""A machine image that is resumed twice: the same process continues in two copies without notice."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

RESUMED_TWICE = """
import ctypes, os, sys
import numpy as np
from taciturn import GaussianNoise, Logistic, PenaltyPerturbation
from taciturn.methods.admm.node import Node, NodeState
from taciturn.objective.local import LocalObjective
from taciturn.objective.solver.many import ManySites
from taciturn.rng import SecureStreams

rows = np.random.default_rng(0)
X = rows.standard_normal((40, 5))
X /= np.linalg.norm(X, axis=1, keepdims=True)
y = np.where(X[:, 0] > 0, 1.0, -1.0)
objective = LocalObjective(X, y, loss=Logistic(), C=10.0, regularization=0.1, sites=2)
method = PenaltyPerturbation(1.0, 1.0, GaussianNoise(std=5.0), output_noise=GaussianNoise(std=1e-4))
one = np.array([0]), ManySites([objective]), np.array([1])
node = Node(*one, tables=method.tables(2, 1).part(range(1)), tol=1e-9, streams=SecureStreams())
node.primal(NodeState.start(np.zeros((1, 1, 5)), np.zeros((1, 1, 5))))  # it has run for a while

copies = []
for heard in (0.0, 1.0):  # each copy hears another message, as an attacker would arrange it
    read, write = os.pipe()
    child = ctypes.CDLL(None).fork()  # the bare system call: Python's own hooks after a fork do not run
    if child == 0:
        f = node.primal(NodeState.start(np.zeros((1, 1, 5)), np.full((1, 1, 5), heard)))[0]
        gradient = objective.gradient(f) + 2.0 * f - 1.0 * heard
        os.write(write, (gradient / -2.0).tobytes())  # the noise, by the equation of the round
        os._exit(0)
    os.waitpid(child, 0)
    copies.append(os.read(read, 40))
sys.stdout.write(" ".join(copy.hex() for copy in copies))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_two_copies_of_one_process_do_not_draw_the_same_noise():
    """With equal noise, the difference of two releases has no noise and reveals a record."""
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", RESUMED_TWICE], capture_output=True, text=True, env=os.environ | path
    )
    assert done.returncode == 0, done.stderr
    first, second = (np.frombuffer(bytes.fromhex(part)) for part in done.stdout.split())
    assert np.linalg.norm(first) > 0.1 and np.linalg.norm(second) > 0.1
    assert np.linalg.norm(first - second) > 0.1
