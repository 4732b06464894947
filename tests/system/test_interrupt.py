"""Ctrl-C during a run: one clean KeyboardInterrupt, no partial result, no remaining thread."""

from __future__ import annotations

import signal
import subprocess
import sys

PROGRAM = """
import signal, sys, threading
import numpy as np, taciturn
from taciturn.methods.run import Recorder

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started with it ignored
record = Recorder.record
def announced(self, t, *arguments):
    if t == 3:  # by now all threads have started
        print("running", flush=True)
    return record(self, t, *arguments)
Recorder.record = announced

rng = np.random.default_rng(0)
X = rng.standard_normal((2000, 40)); X /= np.linalg.norm(X, axis=1, keepdims=True)
y = np.sign(X[:, 0])
problem = taciturn.Problem([(X, y)] * 5, loss=taciturn.Logistic(), C=100.0, regularization=0.1)
result = None
try:
    result = taciturn.simulate(problem, taciturn.Graph.ring(5), taciturn.ADMM(0.5), rounds=10**6)
except KeyboardInterrupt:
    print("interrupted", result, threading.active_count(), flush=True)
    sys.exit(130)
"""


def test_interrupt_leaves_no_half_result():
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "running\n"
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert out == "interrupted None 1\n" and process.returncode == 130
