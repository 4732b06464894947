"""The rivals of docs/utility.md spend what they are given: not more, and hardly less."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.rdp import RdpAccountant

import taciturn as tt

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.utility import rivals
from benchmarks.utility.tasks import Task


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 3)) / 2
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    return rivals.Case(Task("made up", X, y, X, y), sites=4, epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize("method", ["dual", "primal"])
def test_perturbed_admm_is_certified_at_the_budget(case, method):
    std = rivals.noise_std(case, method, 0.05, 3, case.least, 3, 4)
    kind = {"dual": tt.DualPerturbation, "primal": tt.PrimalPerturbation}[method]
    problem = tt.Problem(case.task.hands(4, 0), C=1.0, regularization=1e-7)
    perturbed = kind(0.05 / 6, tt.GaussianNoise(std))
    run = tt.simulate(problem, case.graph, perturbed, rounds=3, tol=1e-12, progress=False)
    assert 0.99 < run.certificate(1e-5).epsilon <= 1.0001


def test_gradient_noise_agrees_with_another_accountant(case):
    shape = 1.02 ** np.arange(20)
    accountant = RdpAccountant(orders=[1 + x / 10 for x in range(1, 600)])
    for std in rivals.gradient_noise(case, shape):
        accountant.compose(GaussianDpEvent(std * case.least / 2))
    assert accountant.get_epsilon(1e-5) == pytest.approx(1.0, rel=0.01)


def test_every_rival_gives_a_model(case):
    for rival in rivals.rivals(None, quick=True):
        hands = case.task.hands(4, 0)
        found = [rival.fit(case, hands, setting, 0) for setting in rival.grid[-2:]]
        assert any(f is not None and np.isfinite(f).all() and f.shape[-1] == 4 for f in found), rival.name
        assert all(len(case.task.score(f)) == 2 for f in found if f is not None)
