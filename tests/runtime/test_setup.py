"""The facts of a run match what the run does, site by site."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from support.sharded import setup_of
from taciturn.core.types import Array

SIZES = (40, 3, 17)


def test_every_site_is_charged_for_its_own_rows_degree_and_penalty() -> None:
    hands = [(X[:B], y[:B]) for (X, y), B in zip(make_sites(n=3), SIZES, strict=True)]
    problem = tt.Problem(hands, C=3.0, regularization=0.6)
    method = tt.PenaltyPerturbation(
        [0.5, 1.5, 4.0], 0.5, tt.GaussianNoise(2.0), output_noise=tt.GaussianNoise(0.1)
    )
    setup = setup_of(problem, tt.Graph.path(3), method, rounds=2, seed=1, tol=0.01)
    run, sites = setup.run_facts(), setup.site_facts()
    assert [facts.samples for facts in sites] == list(SIZES)
    assert [facts.degree for facts in sites] == [1, 2, 1]
    assert (run.C, run.regularization, run.tol, run.sites) == (3.0, 0.6, 0.01, 3)
    assert run.strong == pytest.approx(0.2)
    stated = setup.forecast(1e-5)
    k = [3.0 / (2 * eta * V * B) for eta, V, B in zip((0.5, 1.5, 4.0), (1, 2, 1), SIZES, strict=True)]
    assert stated.worst_site == k.index(max(k)) == 1
    assert len({cost.epsilon for cost in stated.costs}) == 3


class Half:
    """r(f) = f^2 / 4: half as strongly convex as the default."""

    name = "half"
    strong_convexity = curvature_bound = 0.5

    def value(self, f: Array) -> Array:
        return np.asarray(np.sum(np.square(f), axis=-1) / 4)

    def gradient(self, f: Array) -> Array:
        return f / 2

    def curvature(self, f: Array) -> Array:
        return np.full_like(f, 0.5)


def test_a_regulariser_counts_by_how_strongly_convex_it_is() -> None:
    """Otherwise the facts would state too large a least eigenvalue, and so too small a curvature term."""
    method = tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(2.0))
    told = {}
    for regularizer in (None, Half()):
        problem = tt.Problem(make_sites(n=3), C=3.0, regularization=0.6, regularizer=regularizer)
        setup = setup_of(problem, tt.Graph.path(3), method, rounds=2, seed=1, tol=0.01)
        told[regularizer is None] = setup.run_facts()
    assert told[True].regularization == 0.6
    assert told[False].regularization == 0.3 and told[False].strong == pytest.approx(0.1)
