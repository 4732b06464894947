"""Small sites: certified like the others, to the same bits alone, among many, and in any thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, reject, settings

from objective.test_checking import Counted, Elastic
from support.exact_gradient import gradient_error
from support.hard_problems import LOSSES, Recipe, recipes
from taciturn.core.errors import NotConverged, ParameterError
from taciturn.core.types import Array
from taciturn.objective import LocalObjective, Logistic, Objective, SolverState, minimise
from taciturn.objective.solver.general import minimise_general
from taciturn.objective.solver.gradient_evaluator import GradientEvaluator
from taciturn.objective.solver.many import ManySites
from taciturn.objective.solver.small.sites import is_small, is_small_size, pack, small_form

hard = recipes(
    rows=60, dimension=24, rank=12, repeats=5, penalty=[1e-4, 1e-2, 0.5, 1e4], norm=[1.0, 1e-3, 1e3]
)


def kernel(recipe: Recipe, tol: float) -> tuple[Objective, Array, Array, Array]:
    """(the objective, the linear terms, f, the bound on the gradient) as the kernel alone has them."""
    objective, linear, start = recipe.make()
    assert is_small(objective)
    f, bound = pack([objective]).minimise(np.array([recipe.curvature]), linear[None], start[None], tol)
    return objective, linear, f[0], bound[0]


@settings(max_examples=60, deadline=None)
@given(recipe=hard)
@pytest.mark.slow
def test_both_solvers_agree_within_their_certified_distances(recipe: Recipe) -> None:
    objective, linear, start = recipe.make()
    task = {"curvature": recipe.curvature, "linear": linear, "start": start, "tol": 1e-8}
    try:
        general = minimise_general(objective, **task, state=SolverState())
    except NotConverged:  # long rows and hardly a penalty: floats end before 1e-8
        reject()
    ours = minimise(objective, **task, state=SolverState())
    assert np.all(ours.distance <= 1e-8)
    apart = np.linalg.norm(ours.f - general.f, axis=1)
    assert np.all(apart <= ours.distance + general.distance)


@settings(max_examples=40, deadline=None)
@given(recipe=hard)
def test_the_bound_holds_in_exact_arithmetic(recipe: Recipe) -> None:
    """It also holds where the kernel fails, and for a tolerance at the level of rounding errors."""
    recipe = replace(recipe, rows=min(recipe.rows, 20))
    for tol in (1e-3, 1e-16):
        objective, linear, f, bound = kernel(recipe, tol)
        true = gradient_error(objective, recipe.curvature, linear, f, np.zeros_like(linear))
        assert np.all(true <= bound)


def test_bound_needs_its_rounding_term() -> None:
    """Near float precision the computed gradient alone understates the true one."""
    understated = 0
    for seed in range(12):
        recipe = Recipe(rows=30, dimension=4, rank=4, share=1.0, repeats=2, seed=seed)
        objective, linear, f, _ = kernel(recipe, 1e-16)
        true = gradient_error(objective, recipe.curvature, linear, f, np.zeros_like(linear))
        computed = GradientEvaluator(objective, recipe.curvature, linear).gradient(f)
        understated += int(np.sum(true > np.linalg.norm(computed, axis=1)))
    assert understated > 0


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("size", [(40, 7), (7, 40), (1, 1), (1, 30)])
@pytest.mark.parametrize("csr", [False, True])
def test_the_kernel_itself_meets_1e_9_on_ordinary_problems(
    loss: object, size: tuple[int, int], csr: bool
) -> None:
    recipe = Recipe(rows=size[0], dimension=size[1], rank=min(size), loss=loss, csr=csr)
    objective, _, _, bound = kernel(recipe, 1e-9)
    assert np.all(bound <= (objective.strong + recipe.curvature) * 1e-9)


@pytest.mark.parametrize("csr", [False, True])
def test_what_the_kernel_cannot_certify_the_general_solver_finishes(csr: bool) -> None:
    recipe = Recipe(
        rows=44, dimension=21, rank=21, loss=LOSSES[4], penalty=1e-4, rho=1e-6, share=1.0, csr=csr
    )
    objective, linear, _, bound = kernel(recipe, 1e-9)
    assert np.all(bound > (objective.strong + recipe.curvature) * 1e-9)
    _, _, start = recipe.make()
    task = {"curvature": recipe.curvature, "linear": linear, "start": start}
    finished = minimise(objective, **task, tol=1e-9, state=SolverState())
    assert np.all(finished.distance <= 1e-9) and finished.passes > 0
    again = minimise(objective, **task, tol=1e-9, state=SolverState())
    assert np.array_equal(finished.f, again.f)
    with pytest.raises(NotConverged, match="too small for the rounding errors"):
        minimise(objective, **task, tol=1e-22, state=SolverState())


def many(count: int, **changes: object) -> tuple[list[LocalObjective], Array, Array]:
    """(objectives of one dimension, linear terms, starts) for some sites of unequal size."""
    made = [Recipe(rows=5 + 9 * i, dimension=6, rank=6, seed=i, **changes).make() for i in range(count)]
    objectives, linear, start = zip(*made, strict=True)
    return list(objectives), np.stack(linear), np.stack(start)


@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[3]], ids=repr)
@pytest.mark.parametrize("csr", [False, True])
def test_a_site_gets_the_same_bits_alone_among_others_and_in_any_thread(loss: object, csr: bool) -> None:
    objectives, linear, start = many(9, loss=loss, csr=csr)
    curvature = np.linspace(0.5, 3.0, 9)
    alone = [
        minimise(o, curvature=c, linear=b, start=f, tol=1e-8, state=SolverState()).f
        for o, c, b, f in zip(objectives, curvature.tolist(), linear, start, strict=True)
    ]
    sites = ManySites(objectives)
    assert all(map(is_small, objectives))
    together = sites.minimise(curvature, linear, start, 1e-8)
    assert np.array_equal(together, np.stack(alone))

    def part(bounds: tuple[int, int]) -> Array:
        some = slice(*bounds)
        return sites.part(*bounds).minimise(curvature[some], linear[some], start[some], 1e-8)

    with ThreadPoolExecutor(3) as pool:
        parts = list(pool.map(part, [(0, 2), (2, 3), (3, 9)]))
    assert np.array_equal(np.concatenate(parts), together)


@pytest.mark.parametrize("csr", [False, True])
def test_a_repeat_gets_the_same_bits_whatever_the_others(csr: bool) -> None:
    objective, linear, start = Recipe(repeats=5, csr=csr).make()
    linear *= np.array([1.0, 1e3, 1e-3, -30.0, 0.0])[:, None]  # some are done long before others
    task = {"curvature": 2.0, "tol": 1e-8, "state": SolverState()}
    five = minimise(objective, linear=linear, start=start, **task).f
    for r in range(5):
        one = minimise(objective, linear=linear[r : r + 1], start=start[r : r + 1], **task).f
        assert np.array_equal(one[0], five[r])


def test_small_and_other_sites_side_by_side() -> None:
    objectives, linear, start = many(3)
    large, b, f = Recipe(rows=9000, dimension=6, rank=6).make()
    csr, c, g = Recipe(rows=30, dimension=6, rank=6, csr=True).make()
    objectives[1:1] = [large, csr]
    linear, start = np.insert(linear, [1, 1], [b, c], axis=0), np.insert(start, [1, 1], [f, g], axis=0)
    sites = ManySites(objectives)
    forms = ["dense", None, "sparse", "dense", "dense"]
    assert [small_form(objective) for objective in objectives] == forms and None in forms
    curvature = np.full(5, 2.0)
    together = sites.minimise(curvature, linear, start, 1e-8)
    losses, qualities = sites.metrics(together)
    for i, objective in enumerate(objectives):
        alone = minimise(
            objective, curvature=2.0, linear=linear[i], start=start[i], tol=1e-8, state=SolverState()
        )
        assert np.array_equal(alone.f, together[i])
        loss, quality = objective.metrics(together[i])
        np.testing.assert_allclose(losses[i], loss, rtol=1e-13)
        np.testing.assert_allclose(qualities[i], quality, rtol=1e-13)
    part = sites.part(1, 4).minimise(curvature[1:4], linear[1:4], start[1:4], 1e-8)
    assert np.array_equal(part, together[1:4])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("csr", [False, True])
def test_metrics_are_those_of_the_objective(loss: object, csr: bool) -> None:
    objectives, linear, _ = many(3, loss=loss, csr=csr, repeats=5)
    far = 30.0 * linear
    for f in (linear, 1e-6 * linear, far, np.zeros_like(linear)):
        losses, qualities = pack(objectives).metrics(f)
        for i, objective in enumerate(objectives):
            loss_i, quality_i = objective.metrics(f[i])
            np.testing.assert_allclose(losses[i], loss_i, rtol=1e-12, atol=1e-300)
            np.testing.assert_allclose(qualities[i], quality_i, rtol=1e-12)


def test_the_rows_are_held_once() -> None:
    objectives, _, start = many(4)
    before = [objective.gradient(f) for objective, f in zip(objectives, start, strict=True)]
    packed = pack(objectives)
    for objective, f, g in zip(objectives, start, before, strict=True):
        Z = objective.parts[0].rows.Z
        assert np.shares_memory(Z, packed.arrays[0]) and not Z.flags.writeable
        assert np.array_equal(objective.gradient(f), g)
    assert np.shares_memory(pack(objectives[:1]).arrays[0], packed.arrays[0])
    assert np.shares_memory(pack(objectives).arrays[0], packed.arrays[0]), "a second run copies nothing"


def test_sparse_rows_are_held_once() -> None:
    objectives, _, start = many(4, csr=True, loss=LOSSES[3])
    before = [objective.gradient(f) for objective, f in zip(objectives, start, strict=True)]
    packed = pack(objectives)
    entries, columns, _ = packed.arrays
    for objective, f, g in zip(objectives, start, before, strict=True):
        rows = objective.parts[0].rows
        assert np.shares_memory(rows.Z.data, entries) and np.shares_memory(rows.offset, packed.offset)
        assert np.shares_memory(rows.Z.indices, columns) and not rows.Z.data.flags.writeable
        assert np.array_equal(objective.gradient(f), g)
    assert np.shares_memory(pack(objectives).arrays[0], entries), "a second run copies nothing"


def test_inputs_are_left_alone() -> None:
    objective, linear, start = Recipe().make()
    kept = linear.copy(), start.copy()
    minimise(objective, curvature=2.0, linear=linear, start=start, tol=1e-9, state=SolverState())
    assert np.array_equal(linear, kept[0]) and np.array_equal(start, kept[1])


class MyLogistic(Logistic):
    """A subclass may do anything, so it is not taken for the loss that it is made from."""


def test_small_sites_are_recognised() -> None:
    ordinary = Recipe().make()[0]
    assert small_form(ordinary) == "dense" and len(pack([ordinary]).arrays) == 1
    assert small_form(Recipe(csr=True).make()[0]) == "sparse"
    assert small_form(Recipe(csr=True, rows=4000, dimension=20).make()[0]) is None
    rows = ordinary.parts[0].rows
    X, y = np.array(rows.Z), np.ones(rows.samples)
    facts = {"C": 5.0, "regularization": 0.1, "sites": 5}
    for loss, regularizer in ((Counted([]), None), (MyLogistic(), None), (Logistic(), Elastic())):
        assert not is_small(LocalObjective(X, y, loss=loss, regularizer=regularizer, **facts))
    assert is_small_size(20, 10) and is_small_size(40, 105) and is_small_size(2000, 10)
    assert not is_small_size(2200, 10) and not is_small_size(400, 105) and not is_small_size(6, 10_000)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tol": 0.0}, "`tol` must be above 0"),
        ({"curvature": -1.0}, "`curvature` must be at least 0"),
        ({"linear": np.full((3, 8), np.inf)}, "`linear` and `start` must be finite"),
        ({"start": np.zeros((2, 8))}, r"got \(3, 8\) and \(2, 8\)"),
    ],
)
def test_bad_arguments(changes: dict[str, object], message: str) -> None:
    objective, linear, start = Recipe().make()
    arguments = {"curvature": 2.0, "linear": linear, "start": start, "tol": 1e-9, "state": SolverState()}
    with pytest.raises(ParameterError, match=message):
        minimise(objective, **{**arguments, **changes})
