"""The solver's bound on its rounding errors holds, and careful gradients are nearly exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.exact_gradient import gradient_error
from support.hard_problems import Recipe, recipes
from taciturn.objective import LocalObjective, Logistic
from taciturn.objective.solver.careful import CarefulGradientEvaluator, _split_columns, _two_sum
from taciturn.objective.solver.gradient_evaluator import GradientEvaluator
from taciturn.objective.solver.rounding import exact_bits

RECIPES = recipes(
    rows=30, dimension=6, rank=6, repeats=3, penalty=[1e-8, 1e-3, 0.5, 1e3], norm=[1e-3, 1.0, 1e4]
)


@settings(max_examples=60, deadline=None)
@given(recipe=RECIPES, size=st.sampled_from([0.0, 1e-6, 1.0, 1e3, 1e7]))
@pytest.mark.parametrize("kind", [GradientEvaluator, CarefulGradientEvaluator])
def test_the_evaluation_error_is_within_its_bound(
    kind: type[GradientEvaluator], recipe: Recipe, size: float
) -> None:
    objective, linear, centre = recipe.make()
    passes = kind(objective, recipe.curvature, linear)
    F = size * centre
    error = gradient_error(objective, recipe.curvature, linear, F, passes.gradient(F))
    assert np.all(error <= passes.doubt(F))


def one_feature(X: list[list[float]], y: list[float], F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(error, doubt) of careful gradients where almost nothing but the data's part is left."""
    objective = LocalObjective(X, y, loss=Logistic(), C=1.0, regularization=1e-13, sites=1)
    linear = np.zeros_like(F)
    passes = CarefulGradientEvaluator(objective, 0.0, linear)
    return gradient_error(objective, 0.0, linear, F, passes.gradient(F)), passes.doubt(F)


def test_cancelling_slopes_still_have_rounding_error() -> None:
    F = np.random.default_rng(0).uniform(1e-9, 1e-3, size=(300, 1))
    error, doubt = one_feature([[1.0], [1.0]], [1.0, -1.0], F)
    assert np.all(error <= doubt)
    assert np.max(error) > 0.05 * np.max(doubt)


def test_large_margins_have_rounding_error() -> None:
    F = np.random.default_rng(0).uniform(90, 110, size=(300, 2))
    error, doubt = one_feature([[0.7, 0.3]], [1.0], F)
    assert np.all(error <= doubt)
    data = np.exp(-F @ [0.7, 0.3])
    assert np.max(error / data) > 20 * 2.0**-53  # more than the slope's own rounding


def test_careful_gradients_are_closer_and_their_error_bound_is_smaller() -> None:
    objective, linear, centre = Recipe(rows=400, dimension=40, rank=40, repeats=1).make()
    plain, careful = (kind(objective, 2.0, linear) for kind in (GradientEvaluator, CarefulGradientEvaluator))
    F = 30 * centre
    g, h = plain.gradient(F), careful.gradient(F)
    assert careful.doubt(F)[0] < 0.05 * plain.doubt(F)[0]
    error = gradient_error(objective, 2.0, linear, F, h)
    assert error[0] > 0.001 * careful.doubt(F)[0]  # the bound is not idle
    assert np.linalg.norm(g - h) <= plain.doubt(F)[0] + careful.doubt(F)[0]


def test_products_of_high_parts_are_exact_in_any_order() -> None:
    rng = np.random.default_rng(0)
    terms = 1000
    beta = exact_bits(terms)
    a, b = rng.normal(size=(terms, 1)), np.exp(rng.normal(size=(terms, 1)))
    (a_high, a_low), (b_high, b_low) = _split_columns(a, beta), _split_columns(b, beta)
    assert np.array_equal(a_high + a_low, a) and np.array_equal(b_high + b_low, b)
    exact = sum(float(x).as_integer_ratio()[0] for x in a_high[:, 0] * b_high[:, 0] * 2.0**60)
    for order in (slice(None), slice(None, None, -1), rng.permutation(terms)):
        assert float((a_high[order].T @ b_high[order])[0, 0] * 2.0**60) == exact


def test_two_sum_loses_nothing() -> None:
    s, e = _two_sum(np.array([1e16, 1.0, -3.5]), np.array([1.0, 1e-20, 3.5]))
    assert s.tolist() == [1e16, 1.0, 0.0]
    assert e.tolist() == [1.0, 1e-20, 0.0]
