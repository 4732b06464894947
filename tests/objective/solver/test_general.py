"""The general minimiser: within its tolerance on every problem, hard ones included, or a clear error."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from scipy import sparse

from objective.test_checking import Counted, Elastic
from support.exact_gradient import gradient_error
from support.hard_problems import LOSSES, Recipe, recipes
from taciturn.core.errors import NotConverged, ParameterError
from taciturn.objective import LocalObjective, Logistic, Solution, SolverState
from taciturn.objective.solver import gradient_evaluator as passes
from taciturn.objective.solver.careful import CarefulGradientEvaluator
from taciturn.objective.solver.general import minimise_general
from taciturn.objective.solver.gradient_evaluator import GradientEvaluator
from taciturn.objective.solver.lbfgs import norms
from taciturn.objective.solver.newton import newton
from taciturn.objective.solver.preconditioner import Diagonal
from taciturn.objective.solver.rounding import least_tol


def solve(recipe: Recipe, tol: float, state: SolverState | None = None) -> Solution:
    objective, linear, start = recipe.make()
    return minimise_general(
        objective,
        curvature=recipe.curvature,
        linear=linear,
        start=start,
        tol=tol,
        state=state or SolverState(),
    )


def within_reach(recipe: Recipe, objective: LocalObjective, linear: np.ndarray) -> float:
    """A tolerance that floats certify on this problem."""
    m, rows = objective.strong + recipe.curvature, objective.parts[0].rows
    least = least_tol(
        recipe.loss,
        C=max(recipe.share * recipe.rows, 1e-3),
        m=np.array([m]),
        smooth=np.ones(1),
        pull=np.array([np.max(norms(linear)) / m]),
        samples=np.array([recipe.rows]),
        d=recipe.dimension,
        target=rows.largest_offset,
    )
    return float(least[0])


hard = recipes(rows=80, dimension=12, rank=12, repeats=4, penalty=[1e-3, 1e-2, 0.5, 1e4])


@settings(max_examples=80, deadline=None)
@given(recipe=hard)
@example(recipe=Recipe(rows=31, dimension=1, rank=1, loss=LOSSES[2], share=1.0, penalty=1e-3, separable=True))
@pytest.mark.slow
def test_it_meets_1e_10_on_made_up_problems(recipe: Recipe) -> None:
    objective, linear, _ = recipe.make()
    m = objective.strong + recipe.curvature
    try:
        solution = solve(recipe, 1e-10)
    except NotConverged:  # only where the bound that real runs rest on says that floats may end before
        assert within_reach(recipe, objective, linear) > 1e-10
        return
    assert np.all(solution.distance <= 1e-10)
    assert solution.gradient_norm == pytest.approx(m * solution.distance)
    plain = GradientEvaluator(objective, recipe.curvature, linear)
    assert np.all(norms(plain.gradient(solution.f)) <= solution.gradient_norm + plain.doubt(solution.f))


@settings(max_examples=10, deadline=None)
@given(recipe=hard)
def test_the_certificate_holds_in_exact_arithmetic(recipe: Recipe) -> None:
    recipe = replace(recipe, rows=min(recipe.rows, 20), dimension=min(recipe.dimension, 5))
    objective, linear, _ = recipe.make()
    solution = solve(recipe, 1e-10)
    nothing = np.zeros_like(linear)
    true = gradient_error(objective, recipe.curvature, linear, solution.f, nothing)
    assert np.all(true <= solution.gradient_norm)


@pytest.mark.parametrize("carefully", [False, True])
def test_certificate_needs_its_rounding_term(carefully: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Near float precision the computed gradient alone understates the true one; the bound does not."""
    understated = 0
    for seed in range(12):
        recipe = Recipe(rows=30, dimension=4, rank=4, share=1.0, repeats=2, seed=seed)
        objective, linear, _ = recipe.make()
        with monkeypatch.context() as patch:
            if carefully:  # nothing is certified by plain gradients
                patch.setattr(passes, "a_priori_error", lambda o, b, c, linear, F: np.full(len(F), 1e-9))
            solution = solve(recipe, 3e-14)
        true = gradient_error(objective, recipe.curvature, linear, solution.f, np.zeros_like(linear))
        assert np.all(true <= solution.gradient_norm)
        kind = CarefulGradientEvaluator if carefully else GradientEvaluator
        computed = kind(objective, recipe.curvature, linear).gradient(solution.f)
        understated += np.sum(true > norms(computed))
    assert understated > 0


@pytest.mark.parametrize(
    ("recipe", "tol"),
    [
        (Recipe(rows=2000, dimension=105, rank=96, share=1.0), 1e-10),
        (Recipe(rows=2000, dimension=105, rank=96, share=1.0, penalty=1e-4), 1e-7),
        (Recipe(rows=500, dimension=20, rank=20, share=1.0, penalty=1e-8, rho=1e-6, separable=True), 1e-6),
        (Recipe(rows=500, dimension=20, rank=20, share=1.0, norm=1e4), 1e-8),
        (Recipe(rows=500, dimension=20, rank=20, share=1.0, norm=1e4, separable=True), 1e-8),
        (Recipe(rows=500, dimension=20, rank=20, share=1.0, penalty=1e-4, loss=LOSSES[2]), 1e-8),
        (Recipe(rows=500, dimension=20, rank=20, share=1.0, penalty=1e-4, loss=LOSSES[4]), 1e-8),
        (Recipe(rows=1, dimension=105, rank=1, share=1.0), 1e-10),
        (Recipe(rows=300, dimension=105, rank=96, share=1.0, repeats=100), 1e-10),
        (Recipe(rows=300, dimension=105, rank=96, share=1.0, repeats=1), 1e-10),
        (Recipe(rows=40, dimension=2000, rank=40, share=1.0), 1e-10),
    ],
    ids=str,
)
def test_hard_problems(recipe: Recipe, tol: float) -> None:
    assert np.all(solve(recipe, tol).distance <= tol)


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_thousands_of_sparse_features_without_a_square_matrix(share: float) -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((3000, 4000), density=0.005, rng=rng, format="csr")
    y = np.where(rng.random(3000) < 0.5, -1.0, 1.0)
    objective = LocalObjective(X, y, loss=Logistic(), C=share * 3000, regularization=0.01, sites=5)
    linear = rng.normal(size=(2, 4000))
    state = SolverState()
    solution = minimise_general(
        objective, curvature=2.0, linear=linear, start=np.zeros((2, 4000)), tol=1e-10, state=state
    )
    assert np.all(solution.distance <= 1e-10)
    assert isinstance(state.preconditioner.form, Diagonal)


def test_a_start_at_the_minimiser_is_returned() -> None:
    recipe = Recipe()
    objective, linear, _ = recipe.make()
    state = SolverState()
    again = {"curvature": recipe.curvature, "linear": linear, "tol": 1e-9, "state": state}
    first = minimise_general(objective, start=np.zeros_like(linear), **{**again, "tol": 1e-12})
    second = minimise_general(objective, start=first.f, **again)
    assert np.array_equal(first.f, second.f)
    assert second.passes == 1


def test_leftover_state_of_the_last_solve_is_not_used_as_a_gradient() -> None:
    objective, linear, start = Recipe(rows=200, dimension=5, rank=5, repeats=2).make()
    state = SolverState()
    before = minimise_general(
        objective, curvature=1e8, linear=1e9 * linear, start=start, tol=1e-7, state=state
    )
    assert state.last is not None
    here = state.last[1] + (objective.strong + 1e-3) * before.f  # so that the first repeat seems to be done
    task = {"curvature": 1e-3, "linear": here + np.array([[0.0], [1.0]]), "start": before.f}
    after = minimise_general(objective, **task, tol=1e-9, state=state)
    fresh = minimise_general(objective, **task, tol=1e-10, state=SolverState())
    assert np.all(norms(after.f - fresh.f) <= 1.1e-9)


def test_a_repeat_that_seems_done_is_computed_again_when_another_repeat_takes_one_pass() -> None:
    """The errors of a stored gradient are not covered by the bounds, so the bounds must not rest on it."""
    recipe = Recipe(rows=300, dimension=4, rank=4, repeats=2)
    objective, linear, start = recipe.make()
    state, tol = SolverState(), 1e-6
    before = minimise_general(
        objective, curvature=2.0, linear=linear, start=start, tol=1e-3 * tol, state=state
    )
    assert state.last is not None
    wrong = np.zeros_like(linear)
    wrong[0] = 5 * (objective.strong + 2.0) * tol
    state.last = state.last[0], state.last[1] + wrong  # with these, the first repeat seems to be done
    task = {
        "curvature": 2.0,
        "linear": linear + wrong + np.array([[0.0], [2 * (objective.strong + 2.0) * tol]]),
        "start": before.f,
    }
    after = minimise_general(objective, **task, tol=tol, state=state)
    exact = minimise_general(objective, **task, tol=1e-4 * tol, state=SolverState())
    assert np.all(norms(after.f - exact.f) <= after.distance + 1e-4 * tol)


def test_inputs_are_left_alone() -> None:
    recipe = Recipe(share=1.0, norm=1e4)
    objective, linear, start = recipe.make()
    kept = linear.copy(), start.copy()
    minimise_general(objective, curvature=2.0, linear=linear, start=start, tol=1e-9, state=SolverState())
    assert np.array_equal(linear, kept[0]) and np.array_equal(start, kept[1])


def test_the_same_inputs_give_the_same_bits_on_any_number_of_threads() -> None:
    recipe = Recipe(rows=800, dimension=30, rank=30, repeats=4)
    alone = solve(recipe, 1e-9).f
    for workers in (1, 4):
        with ThreadPoolExecutor(workers) as pool:
            for f in pool.map(lambda _: solve(recipe, 1e-9).f, range(6)):
                assert np.array_equal(f, alone)


def test_a_used_state_changes_results_within_tol_only() -> None:
    recipe = Recipe(rows=800, dimension=30, rank=30, repeats=4)
    state = SolverState()
    solve(replace(recipe, seed=5), 1e-9, state)
    drift = solve(recipe, 1e-9, state).f - solve(recipe, 1e-9).f
    assert np.max(np.linalg.norm(drift, axis=1)) <= 2e-9


def test_a_state_serves_any_number_of_repeats_and_any_penalty() -> None:
    for rows, dimension in ((200, 10), (10, 200)):
        state = SolverState()
        for repeats, penalty in ((3, 0.5), (1, 0.5), (50, 5.0), (2, 1e-3)):
            recipe = Recipe(rows=rows, dimension=dimension, rank=10, repeats=repeats, penalty=penalty)
            assert np.all(solve(recipe, 1e-9, state).distance <= 1e-9)


def test_each_repeat_is_its_own_problem() -> None:
    recipe = Recipe(rows=300, dimension=10, rank=10, repeats=5)
    objective, linear, start = recipe.make()
    together = solve(recipe, 1e-10).f
    for r in range(5):
        row = slice(r, r + 1)
        alone = minimise_general(
            objective,
            curvature=recipe.curvature,
            linear=linear[row],
            start=start[row],
            tol=1e-10,
            state=SolverState(),
        )
        assert np.linalg.norm(alone.f - together[row]) <= 2e-10


@pytest.mark.parametrize("start", [1e3, 1e8, 1e150])
def test_a_far_start_does_not_matter(start: float) -> None:
    recipe = Recipe(share=1.0)
    objective, linear, _ = recipe.make()
    near = solve(recipe, 1e-9).f
    far = minimise_general(
        objective,
        curvature=recipe.curvature,
        linear=linear,
        start=np.full_like(linear, start),
        tol=1e-9,
        state=SolverState(),
    )
    assert np.max(np.linalg.norm(far.f - near, axis=1)) <= 2e-9


def test_a_users_own_loss_and_regulariser_take_the_same_path() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 6))
    objective = LocalObjective(
        X, X @ np.ones(6), loss=Counted([]), C=40.0, regularization=1.0, sites=2, regularizer=Elastic()
    )
    linear = rng.normal(size=(3, 6))
    solution = minimise_general(
        objective, curvature=1.0, linear=linear, start=np.zeros((3, 6)), tol=1e-10, state=SolverState()
    )
    left = objective.gradient(solution.f) + 1.0 * solution.f - linear
    assert np.all(norms(left) <= 1.5 * 1e-10 * (objective.strong + 1.0))


def test_unreachable_tolerance_error_states_the_reachable_one() -> None:
    with pytest.raises(NotConverged, match=r"`tol` = 1e-18 .*Nothing was released") as caught:
        solve(Recipe(), 1e-18)
    reachable = float(str(caught.value).split("tol >= ")[1].split(",")[0])
    assert reachable < 1e-12
    assert np.all(solve(Recipe(), reachable).distance <= reachable)


def test_newton_alone_converges(monkeypatch: pytest.MonkeyPatch) -> None:
    def giving_up(phi, start, target, preconditioner, most, known=None):
        return start, phi.gradient(start)

    monkeypatch.setattr("taciturn.objective.solver.general.lbfgs", giving_up)
    for loss in LOSSES:
        recipe = Recipe(rows=300, dimension=10, rank=10, loss=loss, share=1.0, separable=True)
        assert np.all(solve(recipe, 1e-9).distance <= 1e-9)


def test_a_wrong_certificate_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above can fail: a solver that stops early while claiming 1e-10 is caught."""
    monkeypatch.setattr(GradientEvaluator, "doubt", lambda self, F: np.zeros(len(F)))
    recipe = Recipe(rows=20, dimension=5, rank=5)
    objective, linear, _ = recipe.make()
    solution = solve(recipe, 1e-2)
    true = gradient_error(objective, recipe.curvature, linear, solution.f, np.zeros_like(linear))
    assert np.all(true > 1e-10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tol": 0.0}, "`tol` must be above 0"),
        ({"tol": np.nan}, "`tol` must be finite"),
        ({"curvature": -1.0}, "`curvature` must be at least 0"),
        ({"linear": np.zeros((3, 7))}, r"\(repeats, 8\); got \(3, 7\)"),
        ({"linear": np.zeros(8)}, r"\(repeats, 8\); got \(8,\)"),
        ({"start": np.zeros((2, 8))}, r"got \(3, 8\) and \(2, 8\)"),
        ({"linear": np.full((3, 8), np.nan)}, "must be finite"),
        ({"start": np.full((3, 8), np.inf)}, "must be finite"),
    ],
)
def test_bad_arguments(changes: dict[str, object], message: str) -> None:
    objective, linear, start = Recipe().make()
    arguments = {"curvature": 1.0, "linear": linear, "start": start, "tol": 1e-8, "state": SolverState()}
    with pytest.raises(ParameterError, match=message):
        minimise_general(objective, **{**arguments, **changes})


def test_newton_stops_at_float_precision() -> None:
    objective, linear, _ = Recipe(repeats=1).make()
    phi = GradientEvaluator(objective, 2.0, linear)
    f = newton(phi, np.zeros_like(linear), 0.0)
    assert norms(phi.gradient(f))[0] <= phi.doubt(f)[0]
    assert phi.count < 60


def test_no_solution_is_returned_that_missed_its_tolerance_by_little() -> None:
    """From tolerances that floats can certify down to those that they cannot, in steps of a fifth."""
    certified, refused = 0, 0
    for tol in 1e-12 * 0.8 ** np.arange(45):
        try:
            solution = solve(Recipe(), tol)
        except NotConverged:
            refused += 1
            continue
        assert np.all(solution.distance <= tol)
        certified += 1
    assert certified and refused
