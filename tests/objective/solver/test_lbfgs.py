"""The compact form equals BFGS, and a stall is distinguished from progress."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.objective.solver import lbfgs
from taciturn.objective.solver.lbfgs import Pairs, _worth_rebuilding, dots


def bfgs(H: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The textbook's inverse update, one pair after another."""
    for s, y in pairs:
        V = np.eye(len(s)) - np.outer(s, y) / (s @ y)
        H = V @ H @ V.T + np.outer(s, s) / (s @ y)
    return H


@pytest.mark.parametrize("count", [0, 1, 2, 7, 30])
def test_the_compact_form_is_bfgs(count: int) -> None:
    rng = np.random.default_rng(count)
    repeats, d = 3, 40
    root = rng.normal(size=(d, d))
    P, A = np.eye(d) + 0.1 * root @ root.T, np.eye(d) + 0.1 * root.T @ root
    pairs, kept = Pairs(repeats, d), []
    for _ in range(count):
        s = rng.normal(size=(repeats, d))
        y = s @ A
        pairs.add(s, y, y @ P, dots(s, y))
        kept.append((s, y))
    if count > lbfgs._MEMORY:
        kept = kept[lbfgs._MEMORY // 2 :]
    g = rng.normal(size=(repeats, d))
    direction = pairs.direction(g, g @ P)
    for r in range(repeats):
        H = bfgs(P, [(s[r], y[r]) for s, y in kept])
        assert direction[r] == pytest.approx(-H @ g[r], rel=1e-6, abs=1e-8)


def test_preconditioner_is_rebuilt_only_after_a_stall() -> None:
    quick, slow = [10.0 ** (10 - 2 * k) for k in range(6)], [1e10 * 0.9**k for k in range(6)]
    assert not _worth_rebuilding(quick, cost=3.0)
    assert _worth_rebuilding(slow, cost=3.0)
    assert not _worth_rebuilding(slow, cost=1000.0)
    assert not _worth_rebuilding(slow[:3], cost=1.0)
