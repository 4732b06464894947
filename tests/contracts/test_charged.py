"""Every public function that releases something is charged to the open budget, whole and once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import taciturn as tt
from support.certified_runs import RANGE, Means, X, Y, whitened_penalty
from taciturn.privacy.certificate.certificate import Certificate

SPEND: dict[str, Any] = {"epsilon": 0.5, "sites": 3, "colluding": 1}
FIT = SPEND | {"rounds": 4}
TABLE, RANGES = {name: X[:, k] for k, name in enumerate("abc")}, dict.fromkeys("abc", RANGE)
SCHEMA = tt.data.Schema(tuple(tt.data.Number(name, *RANGE) for name in "abc"))
PUBLIC = tt.PrivateLogisticRegression(classes=[False, True], **FIT).fit(X, Y)


def glm() -> Certificate:
    found: Certificate = tt.PrivateGLM(bounds=[RANGE] * 3, **SPEND | {"epsilon": 4.0}).fit(X, Y).certificate_
    return found


def by_the_paper() -> Certificate:
    model = tt.PrivateLogisticRegression(epsilon=0.5, sites=3, method="penalty", effort="quick", max_rounds=3)
    found: Certificate = model.fit(X, Y).certificate_
    return found


RELEASES: dict[str, Callable[[], Certificate]] = {
    "PrivateLogisticRegression": lambda: tt.PrivateLogisticRegression(**FIT).fit(X, Y).certificate_,
    "PrivateLinearSVC": lambda: tt.PrivateLinearSVC(**FIT).fit(X, Y).certificate_,
    "PrivateHuberRegressor": lambda: tt.PrivateHuberRegressor(target_scale=1, **FIT).fit(X, Y).certificate_,
    "PrivateAdditiveClassifier": lambda: (
        tt.PrivateAdditiveClassifier(schema=SCHEMA, **SPEND).fit(TABLE, Y).certificate_
    ),
    "PrivateAdditiveRegressor": lambda: (
        tt.PrivateAdditiveRegressor(schema=SCHEMA, target_scale=1, **SPEND).fit(TABLE, Y).certificate_
    ),
    "PrivateGLM": glm,
    "private_score": lambda: tt.private_score(PUBLIC, X, Y, **SPEND).certificate,
    "private_description": lambda: tt.private_description(TABLE, RANGES, **SPEND).certificate,
    "private_survival": lambda: tt.private_survival(X[:, 0] + 1, Y, horizon=1.5, **SPEND).certificate,
    "private_correlations": lambda: tt.private_correlations(TABLE, RANGES, **SPEND).certificate,
    "run_program": lambda: tt.run_program(Means(), X, **SPEND).certificate,
    "train": whitened_penalty,
    "train, by an estimator": by_the_paper,
}
ELSEWHERE = {"train_job"}  # tests/jobs/test_budget.py


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_is_charged_whole_before_it_takes_place(name, tmp_path):
    """What the budget has spent is what the certificate states."""
    with tt.Budget(tmp_path / "ledger.sqlite", epsilon=9.0) as budget:
        certificate = RELEASES[name]()
        assert [run.finished for run in budget.runs] == [True]
        assert budget.spent >= certificate.epsilon * (1 - 1e-9)
        assert budget.spent <= certificate.epsilon * (1 + 1e-6)


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_that_the_budget_does_not_cover_is_refused(name, tmp_path):
    with tt.Budget(tmp_path / "ledger.sqlite", epsilon=0.1) as budget:
        with pytest.raises(tt.errors.BudgetExceeded):
            RELEASES[name]()
        assert budget.runs == ()


def test_no_public_function_that_releases_something_is_missing_here():
    names = {name for name in tt.__all__ if name.startswith(("Private", "private_", "run_", "train"))}
    results = {name for name in names if hasattr(getattr(tt, name), "certificate")}
    assert names - results - ELSEWHERE == {name.partition(",")[0] for name in RELEASES}


def test_the_plan_of_whitened_rounds_counts_the_moments():
    model = tt.PrivateLogisticRegression(
        epsilon=0.5, sites=3, method="penalty", effort="quick", max_rounds=3, whiten=True
    ).fit(X, Y)
    assert model.plan_.certificate.epsilon == pytest.approx(model.certificate_.epsilon, rel=1e-6)
    assert model.certificate_.run.moments == 2
