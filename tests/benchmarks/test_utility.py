"""The rivals of docs/utility.md use their whole budget and never exceed it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, pld

import taciturn as tt

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.utility import anchors, contest, descents, gossip, page, rivals, tables
from benchmarks.utility.tasks import Case, Task, make_task
from benchmarks.utility.tasks import graph as make_graph

from taciturn.data import Schema


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
def test_exact_view_of_one_curious_decor_site_matches_its_charge(topology):
    """The exact covariance of the honest messages, given what the curious site knows."""
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


def test_pairwise_noise_has_the_charged_covariance():
    graph = make_graph(16, "torus")
    root = descents._laplacian_root(graph)
    np.testing.assert_allclose(root @ root.T, descents.laplacian(graph), atol=1e-12)
    assert sorted(np.diag(descents.laplacian(graph))) == [4.0] * 16


def test_decor_accounting_needs_more_noise_than_the_exact_accounting(case):
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


@pytest.fixture(scope="module")
def table_case():
    rng = np.random.default_rng(1)
    schema = Schema.of(age=(0, 100), ward=["a", "b"])
    cells = {"age": rng.uniform(0, 100, 3000), "ward": rng.integers(0, 2, 3000)}
    y = np.where(cells["age"] // 25 % 2 == 0, 1.0, -1.0)
    task = make_task("made up", schema, cells, y, np.arange(3000) % 4 == 0, cells["ward"], "ward")
    return Case(task, sites=4, epsilon=3.0, delta=1e-5)


def test_every_baseline_has_a_score_and_flexible_ones_learn_the_curve(table_case):
    for anchor in anchors.anchors(quick=True):
        result = contest.anchored(table_case, anchor, 1)
        assert 0 < result.loss < 0.7 and not result.decentralised, anchor.name
        bends = anchor.name in (anchors.BOOSTING, anchors.EBM, anchors.ALONE_FREE)
        assert (result.accuracy > 0.85) == bends, anchor.name


def test_contender_with_a_feature_map_uses_the_default_map(table_case):
    names = contest.MASKED, contest.MAPPED
    plain, mapped = (contest.masked(table_case, 1, "even", 1, name) for name in names)
    assert mapped.accuracy > 0.85 > 0.8 > plain.accuracy and mapped.spent <= 3.0


def test_the_page_is_made_of_what_was_measured(tmp_path):
    told = {"loss_std": 0.001, "accuracy": 0.8, "accuracy_std": 0.001, "seeds": 3}
    results = []
    for data in tables.TITLES:
        for name, loss in ((rivals.NO_PRIVACY, 0.4), (anchors.BOOSTING, 0.3), (rivals.POOLED, 0.5)):
            results.append(contest.Result(data, 1, 1.0, name, loss, decentralised=False, **told))
        for sites in (5, 20, 100):
            alone = contest.Result(data, sites, 1.0, anchors.ALONE_FREE, 0.45, decentralised=False, **told)
            results.append(alone)
            for epsilon, loss in ((0.1, 0.6), (0.3, 0.5), (1.0, 0.39), (3.0, 0.38), (10.0, 0.37)):
                for name, more in ((contest.MASKED, 0.02), (contest.MAPPED, 0.0), (contest.PLAIN, 0.04)):
                    results.append(
                        contest.Result(data, sites, epsilon, name, loss + more, colluding=1, **told)
                    )
    text = page.write_page(results, tmp_path).read_text()
    assert "<!--" not in text.replace("<!-- -->", "")
    assert "on 12 of 12 tables." in text and "**0.3900**" in text and "joint from 1 (0.450; 0.390)" in text
    assert "better than no map in 60 and worse in 0" in text and "In 108 of 180 combinations" in text
