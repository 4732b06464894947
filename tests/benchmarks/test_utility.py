"""The rivals of docs/utility.md spend what they are given: not more, and hardly less."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, pld

import taciturn as tt

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.utility import contest, descents, gossip, rivals
from benchmarks.utility.tasks import Case, Task
from benchmarks.utility.tasks import graph as make_graph


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 3)) / 2
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    task = Task("made up", X, y, X, y, np.arange(1000) // 10, "decade")
    return Case(task, sites=4, epsilon=1.0, delta=1e-5)


def spent(multipliers: np.ndarray) -> float:
    """What another accountant says of Gaussian releases, each with its noise over the displacement."""
    accountant = pld.PLDAccountant()
    accountant.compose(GaussianDpEvent(float(np.sum(multipliers**-2.0) ** -0.5)))
    return accountant.get_epsilon(1e-5)


@pytest.mark.parametrize("method", ["dual", "primal"])
def test_perturbed_admm_is_certified_at_the_budget(case, method):
    std = rivals.noise_std(case, method, 0.05, 3, case.least, 3, 4)
    kind = {"dual": tt.DualPerturbation, "primal": tt.PrimalPerturbation}[method]
    problem = tt.Problem(case.task.hands(4), C=1.0, regularization=1e-7)
    perturbed = kind(0.05 / 6, tt.GaussianNoise(std))
    run = tt.simulate(problem, case.graph, perturbed, rounds=3, tol=1e-12, progress=False)
    assert 0.99 < run.certificate(1e-5).epsilon <= 1.0001


def test_gradient_noise_agrees_with_another_accountant(case):
    noise = descents.even_noise(1.0, 1e-5, 2 / case.least, 1.02 ** np.arange(20))
    assert spent(noise * case.least / 2) == pytest.approx(1.0, rel=0.001)


@pytest.mark.parametrize("topology", ["ring", "torus", "complete"])
def test_one_curious_site_of_decor_sees_what_is_charged(topology):
    """The exact covariance of what the honest send, without what the curious one knows of it."""
    graph, ratio = make_graph(16, topology), 3.0
    noise = np.eye(15)
    for i, j in graph.edges:
        if 0 not in (i, j):
            pair = np.zeros(15)
            pair[i - 1], pair[j - 1] = ratio, -ratio
            noise += np.outer(pair, pair)
    worst = np.linalg.inv(noise).diagonal().max()
    assert descents.exposure(graph, ratio) == pytest.approx(worst)
    assert 1 / 15 < worst < 1
    assert descents.exposure(graph, 1e4) == pytest.approx(1 / 15, rel=1e-4)


def test_the_noise_of_pairs_has_the_covariance_that_is_charged_for():
    graph = make_graph(16, "torus")
    root = descents._laplacian_root(graph)
    np.testing.assert_allclose(root @ root.T, descents.laplacian(graph), atol=1e-12)
    assert sorted(np.diag(descents.laplacian(graph))) == [4.0] * 16


def test_the_accounting_of_decor_takes_more_noise_than_the_exact_one(case):
    own, exact = (gossip._plain(case, (20, 8.0, 1.0, 0.0), 0, 10.0, renyi) for renyi in (True, False))
    assert 1.03 < own.noise[0] / exact.noise[0] < 1.12
    moved = 2 / case.least * descents.exposure(case.graph, 10.0) ** 0.5
    assert spent(exact.noise / moved) == pytest.approx(1.0, rel=0.001)


def test_every_rival_gives_a_model(case):
    for rival in rivals.rivals(None, quick=True):
        result = contest.contend(case if rival.decentralised else Case(case.task, 1, 1.0, 1e-5), rival, 2)
        assert result is not None and 0 < result.loss < 1, rival.name


def test_masked_descent_is_measured_within_its_budget(case):
    result = contest.masked(case, 1, "uneven", 2)
    assert 0.99 < result.spent <= 1.0 and result.loss < 0.7


def test_rows_are_split_as_the_page_says(case):
    task = case.task
    assert sorted(np.bincount(task.assign(4, "even"))) == [250] * 4
    uneven = np.bincount(task.assign(4, "uneven"), minlength=4)
    assert 10 <= uneven.min() <= 20 and uneven.sum() == 1000
    site = task.assign(4, "by column")
    assert [(site[k * 250 : (k + 1) * 250] == k).mean() for k in range(4)] == [1.0] * 4
