"""Calibration stays just within the budget, with the functions that make the certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from taciturn.core.errors import ParameterError
from taciturn.planning.calibration import Draft, EpsilonBudget, calibrate, epsilon_by_site, quick_factors
from taciturn.privacy.accounting import bounds
from taciturn.privacy.facts import RunFacts
from taciturn.privacy.loss_facts import LossFacts

Array = NDArray[np.float64]
LOSSES = [
    LossFacts("logistic", 1.0, 0.25),
    LossFacts("smooth-hinge", 1.0, 1.0, parameters={"h": 0.5}),
    LossFacts("log-cosh", 1.0, 1.0, parameters={"scale": 1.0}),
]


def drafted(noise: str, rounds: int = 3, *, seed: int = 0, sites: int = 3, **changes: Any) -> Draft:
    """A random draft: uneven sites, growing penalties, falling noise."""
    rng = np.random.default_rng(seed)
    facts: dict[str, Any] = {
        "method": "penalty",
        "noise": noise,
        "loss": LOSSES[seed % 3],
        "sites": sites,
        "rounds": rounds,
        "dimension": int(rng.integers(1, 50)),
        "C": 1.0,
        "regularization": 1e-4,
    }
    eta = 10 ** rng.uniform(-2.5, -1) * rng.uniform(1, 1.5) ** np.arange(rounds)
    output = (facts | changes).get("output_noise")
    return Draft(
        run=RunFacts(**(facts | changes)),
        samples=rng.integers(300, 5000, sites).astype(float),
        degree=rng.integers(1, sites, sites).astype(float),
        eta=np.tile(eta, (sites, 1)),
        relative=np.tile(rng.uniform(0.5, 1.1) ** np.arange(rounds), (sites, 1)),
        output_scale=None if output is None else 0.01 if output == "gaussian" else 100.0,
    )


def cost(draft: Draft, scale: Array, delta: float) -> Array:
    size = scale if draft.run.noise == "gaussian" else 1 / scale
    return epsilon_by_site(draft.run, draft.releases(size[:, 0] / draft.relative[:, 0]), delta)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noise", ["gaussian", "norm"])
def test_the_budget_is_never_passed_and_nearly_all_of_it_is_used(noise: str, seed: int) -> None:
    draft = drafted(noise, 1 + seed, seed=seed)
    budget = EpsilonBudget.of([0.7, 1.0, 4.0], 1e-5, sites=3)
    scale = calibrate(draft, budget)
    assert scale is not None
    used = cost(draft, scale, 1e-5) / np.array(budget.epsilon)
    assert np.all(used <= 1.0) and np.all(used > 0.99)


@pytest.mark.parametrize("seed", range(3))
def test_a_pure_budget_with_norm_noise(seed: int) -> None:
    draft = drafted("norm", 2, seed=seed, output_noise="norm", tol=1e-7)
    scale = calibrate(draft, EpsilonBudget.of(2.0, 0.0, sites=3))
    assert scale is not None
    used = cost(draft, scale, 0.0) / 2.0
    assert np.all(used <= 1.0) and np.all(used > 0.99)


def test_output_noise_and_classes_are_paid_for() -> None:
    plain, covered, more = (
        drafted("gaussian"),
        drafted("gaussian", output_noise="gaussian", tol=1e-4),
        drafted("gaussian", outputs=4),
    )
    budget = EpsilonBudget.of(1.0, 1e-5, sites=3)
    scales = [calibrate(draft, budget) for draft in (plain, covered, more)]
    assert scales[0] is not None and scales[1] is not None and scales[2] is not None
    assert np.all(scales[1] > 1.001 * scales[0])
    assert np.all(scales[2] > 1.9 * scales[0])


def test_no_noise_suffices_if_the_jacobian_alone_exceeds_the_budget() -> None:
    draft = drafted("gaussian")
    tiny = replace(draft, eta=1e-5 * draft.eta)
    assert calibrate(tiny, EpsilonBudget.of(0.1, 1e-5, sites=3)) is None


@pytest.mark.parametrize(("noise", "delta"), [("gaussian", 1e-5), ("norm", 1e-5), ("norm", 0.0)])
def test_the_quick_factor_is_near_the_exact_one(noise: str, delta: float) -> None:
    draft = drafted(noise, loss=LOSSES[1], dimension=100)
    draft = replace(draft, eta=10 * draft.eta)
    scale = calibrate(draft, EpsilonBudget.of(1.0, delta, sites=3))
    assert scale is not None
    exact = (scale if noise == "gaussian" else 1 / scale)[:, 0]
    k = bounds.sample_weight(1.0, draft.eta, draft.degree[:, None], draft.samples[:, None])
    x = bounds.bend(k, bounds.least_eigenvalue(draft.run.strong, draft.eta, draft.degree[:, None]), 1.0)
    D = bounds.displacement(k, 1.0)
    quick = quick_factors(draft.run, noise, D, x, draft.relative, [1.0, 1.0, 1.0], delta)
    assert quick == pytest.approx(exact, rel=0.05)


def test_identical_sites_get_the_same_noise() -> None:
    draft = drafted("gaussian", sites=4)
    same = replace(draft, samples=np.full(4, 900.0), degree=np.full(4, 2.0))
    scale = calibrate(same, EpsilonBudget.of(1.0, 1e-5, sites=4))
    assert scale is not None
    assert np.unique(scale[:, 0]).size == 1


def test_budgets_are_checked() -> None:
    with pytest.raises(ParameterError, match="one entry per site, 3; got 2"):
        EpsilonBudget.of([1.0, 2.0], 1e-5, sites=3)
    with pytest.raises(ParameterError, match="`epsilon` must be above 0"):
        EpsilonBudget.of(0.0, 1e-5, sites=3)
    with pytest.raises(ParameterError, match="`delta`"):
        EpsilonBudget.of(1.0, 2.0, sites=3)
