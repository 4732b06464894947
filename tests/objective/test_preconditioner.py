"""With one repeat, P is the inverse Hessian, in the primal and the dual form; else its diagonal."""

from __future__ import annotations

import numpy as np
import pytest

from objective.hard_problems import Recipe
from tacit.objective import preconditioner
from tacit.objective.passes import Passes
from tacit.objective.preconditioner import Preconditioner, positive_inverse


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize(("rows", "dimension"), [(50, 8), (8, 50), (1, 50), (50, 1)])
def test_it_inverts_the_hessian(rows: int, dimension: int, csr: bool) -> None:
    recipe = Recipe(rows=rows, dimension=dimension, rank=8, csr=csr, share=1.0, repeats=1)
    objective, linear, f = recipe.make()
    passes, P = Passes(objective, 2.0, linear), Preconditioner()
    P.build(passes, f)
    H = objective.hessian(f[0]) + 2.0 * np.eye(dimension)
    V = np.random.default_rng(0).normal(size=(3, dimension))
    assert P.apply(passes, V @ H) == pytest.approx(V, abs=1e-9)
    assert P.size <= 2 * min(rows, dimension) ** 2 + 3 * (rows + dimension)


def test_without_a_matrix_it_is_the_diagonal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preconditioner, "LARGEST_MATRIX", 4)
    for csr in (False, True):
        objective, linear, f = Recipe(csr=csr, repeats=1).make()
        passes, P = Passes(objective, 2.0, linear), Preconditioner()
        P.build(passes, f)
        diagonal = np.diag(objective.hessian(f[0])) + 2.0
        assert P.apply(passes, f) == pytest.approx(f / diagonal)


def test_it_follows_the_penalty_without_new_weights() -> None:
    objective, linear, f = Recipe(repeats=1).make()
    P = Preconditioner()
    P.ready(Passes(objective, 2.0, linear), f)
    for curvature in (2.01, 4.0):
        passes = Passes(objective, curvature, linear)
        P.ready(passes, f)
        H = objective.hessian(f[0]) + curvature * np.eye(8)
        assert P.apply(passes, f @ H) == pytest.approx(f, rel=0.02)
    assert P.rebuilds == 1


def test_nearly_singular_matrices_still_give_something_positive() -> None:
    for A in (np.ones((5, 5)), np.diag([1e20, 1.0, 1e-20]), np.zeros((2, 2)) + np.diag([1.0, 0.0])):
        assert np.linalg.eigvalsh(positive_inverse(A)).min() > -1e-9 * np.abs(positive_inverse(A)).max()
