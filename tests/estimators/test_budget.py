"""Fits inside a budget: each counts as a run, in every process and thread."""

from __future__ import annotations

import copy
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB

import taciturn as tt
from taciturn.core.errors import BudgetExceeded, ParameterError, PrivacyLeakWarning
from taciturn.privacy.ledger.budget import describe_run

FAST = {"sites": 3, "colluding": 1, "rounds": 3}
PLANNED = {"sites": 3, "max_rounds": 2, "effort": "quick"}


@pytest.fixture(scope="module")
def table():
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (300, 2))
    return X, np.where(X[:, 0] > 0, "yes", "no")


@pytest.fixture
def budget(tmp_path):
    return tt.Budget(tmp_path / "ledger.sqlite", epsilon=1)


def test_the_fit_that_would_overspend_is_refused_and_the_others_are_listed(table, budget, tmp_path):
    with budget:
        clf = tt.PrivateLogisticRegression(epsilon=0.7, **FAST).fit(*table)
        assert budget.spent == clf.certificate_.epsilon
        again = tt.PrivateLogisticRegression(epsilon=0.8, ledger=tmp_path / "own.sqlite", **FAST)
        with pytest.raises(BudgetExceeded, match=r"PrivateLogisticRegression costs epsilon = 0\.8"):
            again.fit(*table)
        assert not (tmp_path / "own.sqlite").exists()
        again.set_params(epsilon=budget.left).fit(*table)
    tt.PrivateLogisticRegression(epsilon=9.0, **FAST).fit(*table)  # outside
    assert [run.what for run in budget.runs] == ["PrivateLogisticRegression"] * 2
    assert 0.99 < budget.spent <= 1 and all(run.finished for run in budget.runs)
    assert "at most 1 of 2 other sites collude" in budget.runs[0].against


def test_the_remainder_of_a_large_budget_can_be_spent_and_hardly_more(table, tmp_path):
    budget = tt.Budget(tmp_path / "large.sqlite", epsilon=100, delta=1e-5)
    with budget:
        clf = tt.PrivateLogisticRegression(epsilon=33.0, delta=1e-5, **FAST).fit(*table)
        left = budget.left
        assert "left=81." in repr(budget)
        with pytest.raises(BudgetExceeded, match=r"one run may cost at most 81\."):
            clf.set_params(epsilon=1.01 * left).fit(*table)
        clf.set_params(epsilon=left).fit(*table)
    assert 0.99 * left < clf.certificate_.epsilon <= left and 99 < budget.spent <= 100


def test_runs_whose_certificate_proves_nothing_are_refused(table, budget):
    with budget:
        with pytest.raises(ParameterError, match="`random_state` must be None inside a Budget"):
            tt.PrivateLogisticRegression(random_state=0, **FAST).fit(*table)
        leaky = tt.PrivateLogisticRegression(data_norm="from data", **FAST)
        with (
            pytest.warns(PrivacyLeakWarning),
            pytest.raises(ParameterError, match="`data_norm` must be a public"),
        ):
            leaky.fit(*table)
        problem = tt.Problem(
            [(table[0][:150], np.ones(150))] * 3, loss=tt.Logistic(), C=100, regularization=1.0
        )
        method = tt.PenaltyPerturbation(penalty=1.0, dual_step=0.5, noise=tt.GaussianNoise(9.0))
        with pytest.raises(ParameterError, match="`idealised` must be False inside a Budget"):
            tt.train(problem, "complete", method, rounds=2, idealised=True)
        with pytest.raises(BudgetExceeded):
            tt.PrivateLogisticRegression(epsilon=float("inf"), sites=3, rounds=2).fit(*table)
        glm = tt.PrivateGLM(epsilon=float("inf"), bounds=[(-0.5, 0.5)] * 2)
        with pytest.raises(BudgetExceeded, match="adds no noise, so no budget can pay for it"):
            glm.fit(table[0], np.arange(300) % 2)
    assert budget.runs == ()
    glm.fit(table[0], np.arange(300) % 2)  # outside


def test_the_list_shows_what_the_cost_of_a_run_rests_on(table, budget):
    """A score of a model that its user calls public: the certificate has a mark, and so has the list."""
    public, mark = GaussianNB().fit(np.eye(2), ["no", "yes"]), "the scored model is public"
    with budget:
        tt.private_score(public, *table, epsilon=0.3, sites=3, colluding=1, public=True)
        tt.PrivateLogisticRegression(epsilon=0.3, **FAST).fit(*table)
    lines = [describe_run(run) for run in tt.Budget(budget.path).runs]
    assert mark in lines[0] and mark not in lines[1] and mark in budget._repr_html_()


def test_inside_a_budget_the_planner_chooses_gaussian_noise(table, budget):
    with budget:
        for epsilon in (0.3, 0.4):
            clf = tt.PrivateLogisticRegression(epsilon=epsilon, **PLANNED).fit(*table)
            assert clf.certificate_.run.noise == "gaussian"
        svc = tt.PrivateLinearSVC(epsilon=0.3, **PLANNED).fit(*table)
    assert budget.accountant == "gaussian" and svc.certificate_.accountant == "gaussian"
    assert budget.spent < 0.7


def test_a_grid_search_is_charged_fit_by_fit(table, budget):
    with budget:
        each = budget.share(5)  # two folds, two points, and the best of them once more
        grid = {"regularization": [1e-3, 1e-2]}
        search = GridSearchCV(
            tt.PrivateLogisticRegression(epsilon=each, **FAST), grid, cv=2, error_score="raise"
        )
        search.fit(*table)
        assert len(budget.runs) == 5 and 0.99 < budget.spent <= 1
        with pytest.raises(BudgetExceeded):
            search.fit(*table)


@pytest.mark.process
@pytest.mark.filterwarnings("ignore:A worker stopped")  # one that grew too much: loky starts another
def test_existing_workers_charge_the_same_budget_file(table, budget):
    joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(k) for k in range(2))
    clf = tt.PrivateLogisticRegression(epsilon=0.3, **FAST)
    with budget:
        cross_val_score(clf, *table, cv=2, n_jobs=2, error_score="raise")
        assert [run.finished for run in budget.runs] == [True, True]
        with joblib.parallel_backend("threading"):
            cross_val_score(clf, *table, cv=2, n_jobs=2, error_score="raise")
        assert len(budget.runs) == 4
        with pytest.raises(BudgetExceeded):
            cross_val_score(clf.set_params(epsilon=0.9), *table, cv=2, n_jobs=2, error_score="raise")
    cross_val_score(clf, *table, cv=2, n_jobs=2, error_score="raise")
    assert len(budget.runs) == 4


def test_estimator_and_its_clones_keep_their_budget(table, budget, monkeypatch):
    from taciturn.privacy.ledger import budget as blocks

    clf = tt.PrivateLogisticRegression(epsilon=0.3, **FAST)
    assert vars(copy.deepcopy(clf))["_budget_origin"] == ("", "")
    with budget:
        sent = pickle.dumps(clf)
    pickle.loads(sent).fit(*table)  # in the process that it came from the block is over
    assert budget.runs == ()
    monkeypatch.setattr(blocks, "opened_here", set())  # as in another process
    clone(pickle.loads(sent)).fit(*table)
    assert len(budget.runs) == 1
    clone(pickle.loads(pickle.dumps(pickle.loads(sent)))).fit(*table)  # and from there on to one more
    assert len(budget.runs) == 2
