"""The nodes of V: proven again at some t, and not larger than necessary."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from taciturn.core.errors import ParameterError
from taciturn.privacy.accounting.widening import NODES, penalty_mu, widening

_PATH = Path(__file__).parents[3] / "tools" / "prove_widening.py"


@pytest.fixture(scope="module")
def prover():
    spec = importlib.util.spec_from_file_location("prove_widening", _PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["prove_widening"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["prove_widening"]


def stated(shape, w):
    """V+ + V- of a node."""
    return 2 * dict(NODES[shape])[w]


@pytest.mark.parametrize("t", [0.3, 0.75, 2.0])
def test_up_to_seven_eighths_the_logistic_bend_is_free(prover, t):
    """Every t in an interval at once: V+ - 1 is about 1e-8."""
    extra = prover.excess("logistic", True, 0.875, t, t + 0.01, step=0.01)
    assert prover.least_width(extra, t + 0.01) + 1 <= stated("logistic", 0.875)


@pytest.mark.parametrize(
    ("shape", "w", "times", "step"),
    [
        ("logistic", 1.25, (1.04,), 0.0025),
        ("logistic", 3.0, (1.0, 2.32), 0.004),
        ("one-sided", 0.5, (1.0, 6.34), 0.005),
        ("one-sided", 2.0, (0.5, 1.52), 0.005),
        ("log-cosh", 1.5, (0.04, 1.0), 0.005),
        ("any", 1.0, (0.04, 0.56), 0.01),
    ],
)
def test_nodes_are_proven(prover, shape, w, times, step):
    """At some t of the grid, including the worst; the tool proves all other t."""
    two_sided = shape in ("log-cosh", "any")
    widths = []
    for falling in (True, False) if two_sided else (True,):
        pi = [prover.excess(shape, falling, w, t, step=step) for t in times]
        pairs = zip(pi, times, strict=True)
        widths.append(max(prover.least_width(value - prover.g(t), t) for value, t in pairs))
    assert sum(widths) + (0 if two_sided else 1) <= stated(shape, w)


@pytest.mark.parametrize(("shape", "w", "share"), [("logistic", 2.0, 0.98), ("one-sided", 1.0, 0.97)])
def test_nodes_are_no_larger_than_they_must_be(prover, shape, w, share):
    """The best path on a coarse grid of slopes is admissible, so V+ is no smaller than what it needs."""
    step, best = 0.02, 1.0
    cells = prover.Cells.of(shape, w, step)
    p = np.concatenate([cells.high, [0.0]])
    z = np.arange(-8, 8, step) + step / 2
    for t in (0.5, 1.0, 1.5):
        value = np.zeros(len(p))
        for at in z[::-1]:
            weight = prover.nu(at) * step
            stay = value + np.maximum(at * p - t, 0) * weight
            moved = (p[:-1] + p[1:]) / 2 * at + (p[:-1] - p[1:]) / step - t
            fall = np.where(cells.timed, value[1:] + np.maximum(moved, 0) * weight, 0.0)
            value = np.maximum(stay, np.append(fall, 0.0))
        best = max(best, prover.least_width(value.max() - prover.g(t), t))
    assert best + 1 > share * stated(shape, w)


def test_nodes_rise_and_more_noise_never_costs_more():
    for nodes in NODES.values():
        w, V = np.array(nodes).T
        assert np.all(np.diff(w) > 0) and np.all(np.diff(V) > 0) and V[0] > 1


def test_between_and_beyond_the_nodes():
    assert widening("logistic", [0.0, 0.5, 0.875]).tolist() == [NODES["logistic"][0][1]] * 3
    last, V = NODES["one-sided"][-1]
    assert float(widening("one-sided", 10 * last)) == pytest.approx(10 * V)
    assert float(penalty_mu(0.0, 1.0, 0.0, "any")) == 0.0
    assert float(penalty_mu(0.2, 1e9, 0.1, "logistic")) == pytest.approx(0.2 * 1.78999 / 6, rel=1e-3)
    with pytest.raises(ParameterError, match="shape"):
        widening("square", 1.0)
