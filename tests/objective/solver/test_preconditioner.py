"""With one repeat, P is the inverse of the Hessian (primal or dual form) or of its diagonal."""

from __future__ import annotations

import numpy as np
import pytest

from support.hard_problems import Recipe
from taciturn.objective import blocks
from taciturn.objective.solver.gradient_evaluator import GradientEvaluator
from taciturn.objective.solver.preconditioner import Diagonal, Dual, Preconditioner, Primal, positive_inverse


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize(
    ("rows", "dimension", "form"),
    [(200, 8, Primal), (8, 200, Dual), (1, 50, Dual), (50, 1, Primal)],
)
def test_it_inverts_the_hessian(rows: int, dimension: int, form: type, csr: bool) -> None:
    recipe = Recipe(rows=rows, dimension=dimension, rank=8, csr=csr, share=1.0, repeats=1)
    objective, linear, f = recipe.make()
    passes, P = GradientEvaluator(objective, 2.0, linear), Preconditioner()
    P.build(passes, f)
    assert isinstance(P.form, form)
    H = objective.hessian(f[0]) + 2.0 * np.eye(dimension)
    V = np.random.default_rng(0).normal(size=(3, dimension))
    assert P.apply(passes, V @ H) == pytest.approx(V, abs=1e-9)
    assert P.form.inverse.size <= sum(block.Z.size for block in passes.blocks)


def test_the_dual_spans_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_FEWEST", 3)
    monkeypatch.setattr(blocks, "_DENSE", 3)
    monkeypatch.setattr(blocks, "_SPARSE", 3)
    for csr in (False, True):
        objective, linear, f = Recipe(rows=8, dimension=90, rank=8, csr=csr, repeats=1).make()
        passes, P = GradientEvaluator(objective, 2.0, linear), Preconditioner()
        P.build(passes, f)
        assert isinstance(P.form, Dual) and len(passes.blocks) == 3
        assert P.apply(passes, f @ (objective.hessian(f[0]) + 2.0 * np.eye(90))) == pytest.approx(f, abs=1e-9)


def test_without_a_matrix_it_is_the_diagonal() -> None:
    objective, linear, f = Recipe(rows=30, dimension=25, rank=8, csr=True, repeats=1).make()
    passes, P = GradientEvaluator(objective, 2.0, linear), Preconditioner()
    P.build(passes, f)
    assert isinstance(P.form, Diagonal)
    diagonal = np.diag(objective.hessian(f[0])) + 2.0
    assert P.apply(passes, f) == pytest.approx(f / diagonal)


@pytest.mark.parametrize(("rows", "dimension"), [(200, 8), (8, 200), (30, 25)])
def test_it_follows_the_penalty_without_new_weights(rows: int, dimension: int) -> None:
    recipe = Recipe(rows=rows, dimension=dimension, rank=8, csr=True, repeats=1)
    objective, linear, f = recipe.make()
    P, fresh = Preconditioner(), Preconditioner()
    P.ready(GradientEvaluator(objective, 2.0, linear), f)
    for curvature in (2.01, 4.0):
        passes = GradientEvaluator(objective, curvature, linear)
        P.ready(passes, f)
        fresh.build(passes, f)
        assert P.apply(passes, f) == pytest.approx(fresh.apply(passes, f), rel=0.02, abs=1e-9)
    assert P.apply(passes, f) == pytest.approx(fresh.apply(passes, f), rel=1e-9, abs=1e-9)
    assert P.rebuilds == 1


def test_nearly_singular_matrices_give_a_positive_preconditioner() -> None:
    for A in (np.ones((5, 5)), np.diag([1e20, 1.0, 1e-20]), np.zeros((2, 2)) + np.diag([1.0, 0.0])):
        assert np.linalg.eigvalsh(positive_inverse(A)).min() > -1e-9 * np.abs(positive_inverse(A)).max()
