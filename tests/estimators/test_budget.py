"""Fits inside a budget: each is a run of its own, in whatever process or thread it takes place."""

from __future__ import annotations

import copy
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import taciturn as tt
from taciturn.errors import BudgetExceeded, ParameterError

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
    assert "against 1 of 2 other sites" in budget.runs[0].against


def test_noise_that_can_be_replayed_and_no_noise_are_refused(table, budget):
    with budget:
        with pytest.raises(ParameterError, match="`random_state` must be None inside a Budget"):
            tt.PrivateLogisticRegression(random_state=0, **FAST).fit(*table)
        with pytest.raises(BudgetExceeded):
            tt.PrivateLogisticRegression(epsilon=float("inf"), sites=3, rounds=2).fit(*table)
    assert budget.runs == ()


def test_inside_a_budget_the_planner_takes_noise_whose_mu_is_known(table, budget):
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


def test_workers_that_were_there_before_charge_to_the_same_file(table, budget):
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


def test_an_estimator_takes_the_budget_along_and_its_clones_too(table, budget, monkeypatch):
    from taciturn.privacy.ledger import active

    clf = tt.PrivateLogisticRegression(epsilon=0.3, **FAST)
    assert "_budget_origin" not in vars(copy.deepcopy(clf))
    with budget:
        sent = pickle.dumps(clf)
    pickle.loads(sent).fit(*table)  # in the process that it came from the block is over
    assert budget.runs == ()
    monkeypatch.setattr(active, "_PROCESS", "another")
    clone(pickle.loads(sent)).fit(*table)
    assert len(budget.runs) == 1
