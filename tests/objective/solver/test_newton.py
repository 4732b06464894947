"""Damped Newton lowers phi in every step, from anywhere."""

from __future__ import annotations

import numpy as np
import pytest

from support.hard_problems import LOSSES, Recipe
from taciturn.objective import Loss
from taciturn.objective.solver import newton, preconditioner
from taciturn.objective.solver.continuation import solve_by_stages
from taciturn.objective.solver.gradient_evaluator import GradientEvaluator
from taciturn.objective.solver.lbfgs import norms


@pytest.mark.parametrize("size", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_every_step_lowers_phi(loss: Loss, size: float) -> None:
    recipe = Recipe(loss=loss, share=1.0, penalty=1e-3, repeats=1, separable=True)
    objective, linear, f = recipe.make()
    phi = GradientEvaluator(objective, recipe.curvature, linear)

    def value(f: np.ndarray) -> float:
        return float(objective.value(f)[0] + recipe.curvature / 2 * np.sum(f * f) - np.sum(linear * f))

    f = size * f
    for _ in range(12):
        g = phi.gradient(f)[0]
        p = newton._direction(phi, f, g)
        lower = f + newton._step(phi, f, p, g) * p
        assert value(lower) <= value(f) * (1 + 1e-12 * np.sign(value(f))) + 1e-12
        f = lower


@pytest.mark.parametrize("method", ["newton", "continued"])
@pytest.mark.parametrize("matrix", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_newton_converges(loss: Loss, matrix: bool, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not matrix:
        monkeypatch.setattr(newton, "LARGEST_MATRIX", 4)
        monkeypatch.setattr(preconditioner, "LARGEST_MATRIX", 4)
    recipe = Recipe(loss=loss, share=1.0, repeats=1, csr=True)
    objective, linear, _ = recipe.make()
    phi = GradientEvaluator(objective, recipe.curvature, linear)
    if method == "newton":
        f = newton.newton(phi, np.zeros_like(linear), 1e-9)
    else:
        f = solve_by_stages(phi, 1e-9)
    assert norms(phi.gradient(f))[0] <= 1e-9


def test_a_singular_hessian_is_survived() -> None:
    g = np.array([1.0, 2.0])
    assert np.all(np.isfinite(newton._solve_system(np.ones((2, 2)), g)))
    away = newton._descent(np.full((1, 2), np.nan), g, np.ones(2))
    assert away[0].tolist() == [-1.0, -2.0]
