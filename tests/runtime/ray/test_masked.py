"""Masked descent on a cluster: the bits of the local engine, for one model and for several classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from taciturn.core.errors import ParameterError
from taciturn.objective.softmax import SoftmaxProblem
from taciturn.runtime import RayEngine

METHOD = tt.MaskedDescent(epsilon=1.0, delta=1e-5, colluding=1)
SETTINGS = {"rounds": 5, "repeats": 2, "seed": 3, "history": True, "progress": False}


def same(run, other):
    np.testing.assert_allclose(run.consensus_gap, other.consensus_gap, atol=1e-14)  # 0 but for rounding
    for name in ("coef", "loss", "accuracy", "history"):
        assert np.array_equal(getattr(run, name), getattr(other, name)), name
    assert run.certificate().to_json() == other.certificate().to_json()
    assert run.settings == other.settings


@pytest.mark.parametrize("classes", [2, 3])
def test_equal_to_the_local_engine(joined, classes):
    sites = make_sites(5)
    problem = tt.Problem(sites, C=1.0, regularization=0.1)
    if classes == 3:
        labels = [np.arange(len(y)) % 3 for _, y in sites]
        dealt = [(X, y) for (X, _), y in zip(sites, labels, strict=True)]
        problem = SoftmaxProblem(dealt, classes=3, C=1.0, regularization=0.1)
    here = tt.simulate(problem, "ring", METHOD, **SETTINGS)
    same(tt.simulate(problem, "ring", METHOD, engine=RayEngine(shards=2), **SETTINGS), here)


def test_whitened_descent_has_the_bits_of_the_local_engine(joined):
    problem, method = tt.Problem(make_sites(5), C=1.0, regularization=0.1), replace(METHOD, whiten=True)
    here = tt.simulate(problem, "ring", method, **SETTINGS)
    same(tt.simulate(problem, "ring", method, engine=RayEngine(shards=2), **SETTINGS), here)


def test_rows_of_a_feature_map_have_the_bits_of_the_local_engine(joined):
    rng = np.random.default_rng(0)
    tables = [rng.random((9000, 2)) for _ in range(3)]  # more entries than a site stores expanded
    labels = [np.where(table[:, 0] + 0.3 * rng.normal(size=9000) > 0.5, 1.0, -1.0) for table in tables]
    expand = tt.data.FeatureMap(ranges={0: (0, 1), 1: (0, 1)}, curves=9, surfaces=12, lazy=True).fit(
        tables[0]
    )
    rows = [expand.transform(table) for table in tables]
    problem = tt.Problem(list(zip(rows, labels, strict=True)), C=1.0, regularization=0.1)
    assert "lazy" in repr(problem.site(0))
    settings, method = SETTINGS | {"repeats": 1}, replace(METHOD, whiten=True)
    here = tt.simulate(problem, "ring", method, **settings)
    same(tt.simulate(problem, "ring", method, engine=RayEngine(shards=2), **settings), here)


def test_checkpoints_are_for_other_runs(tmp_path):
    problem = tt.Problem(make_sites(5), C=1.0, regularization=0.1)
    with pytest.raises(ParameterError, match="`checkpoint`"):
        tt.simulate(problem, "ring", METHOD, engine=RayEngine(checkpoint=tmp_path), **SETTINGS)


def test_the_papers_method_on_whitened_rows_has_the_bits_of_the_local_engine(joined):
    problem = tt.Problem(make_sites(5), C=1.0, regularization=0.1)
    method = tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(0.5), whiten=0.5)
    here = tt.simulate(problem, "ring", method, **SETTINGS)
    there = tt.simulate(problem, "ring", method, engine=RayEngine(shards=2), **SETTINGS)
    same(there, here)
    assert np.array_equal(there.coordinates, here.coordinates)
