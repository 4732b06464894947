from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import taciturn as tt
from taciturn.cli.app import run
from taciturn.core.errors import DataError, ParameterError
from taciturn.estimators.personal import OwnRows, lean, own_objective
from taciturn.objective.softmax import SoftmaxProblem

DRAW = np.random.default_rng(0)
X = DRAW.uniform(-0.5, 0.5, (6000, 3))
Y = X @ [4.0, -2.0, 0.0] + DRAW.logistic(size=6000) > 0
ODD = X @ [4.0, -2.0, 6.0] + DRAW.logistic(size=6000) > 0  # a site where the third column matters


@pytest.fixture(scope="module")
def joint() -> Any:
    return tt.PrivateLogisticRegression(colluding=1, random_state=0).fit(X, Y)


def loss(model: Any, rows: Any, labels: Any) -> float:
    chance = model.predict_proba(rows)[np.arange(len(labels)), labels.astype(int)]
    return float(-np.log(np.maximum(chance, 1e-12)).mean())


def test_an_odd_site_gets_its_own_model_and_a_usual_one_stays_with_the_joint_one(joint: Any) -> None:
    own = joint.personalise(X[:300], ODD[:300])
    assert loss(own, X[1000:], ODD[1000:]) < loss(joint, X[1000:], ODD[1000:]) - 0.02
    few = joint.personalise(X[:60], Y[:60])
    alone = LogisticRegression(C=1e6).fit(X[:60], Y[:60])
    assert loss(few, X[1000:], Y[1000:]) < loss(alone, X[1000:], Y[1000:])
    assert loss(few, X[1000:], Y[1000:]) < loss(joint, X[1000:], Y[1000:]) + 0.02


def test_the_joint_model_is_left_as_it_is_and_nothing_is_spent(joint: Any, tmp_path: Path) -> None:
    before = joint.coef_.copy()
    with tt.Budget(tmp_path / "budget.sqlite", epsilon=0.1, delta=1e-5) as budget:
        own = joint.personalise(X[:300], ODD[:300])
        assert budget.spent == tt.Budget(tmp_path / "other.sqlite", epsilon=0.1, delta=1e-5).spent
    assert np.array_equal(joint.coef_, before) and joint.certificate_.epsilon <= 1
    for name in ("certificate_", "trace_", "plan_"):
        assert not hasattr(own, name)


def test_a_strong_pull_gives_the_joint_model_and_a_weak_one_the_sites_own(joint: Any) -> None:
    rows = OwnRows(X[:500], np.where(ODD[:500], 1.0, -1.0)[None], np.ones(500))
    objective, centre = own_objective(tt.Logistic(), together=False), np.array([[1.0, 2.0, 3.0]])
    assert np.allclose(lean(objective, rows, centre, 1e6, centre), centre, atol=1e-4)
    alone = (
        LogisticRegression(C=1e8, fit_intercept=False, tol=1e-8, max_iter=500).fit(X[:500], ODD[:500]).coef_
    )
    assert np.allclose(lean(objective, rows, centre, 1e-9, centre), alone, rtol=1e-2)
    a = 0.01
    F = lean(objective, rows, centre, a, centre)
    slope = objective(F, rows)[1] + a * (F - centre)
    assert np.abs(slope).max() < 1e-4


@pytest.mark.parametrize("together", [True, False])
def test_gradients_are_those_of_the_losses(together: bool) -> None:
    targets = np.where(DRAW.integers(0, 3, 40) == np.arange(3)[:, None], 1.0, -1.0)
    rows = OwnRows(X[:40], targets, DRAW.uniform(0.5, 1, 40))
    for kind in (tt.Logistic(), tt.LogCosh(2.0), tt.SmoothHinge()):
        objective, F = own_objective(kind, together=together), DRAW.normal(size=(3, 3))
        value, slope = objective(F, rows)
        step = 1e-6 * DRAW.normal(size=F.shape)
        assert objective(F + step, rows)[0] - value == pytest.approx(np.sum(slope * step), abs=1e-10)
    if together:
        labels = targets.argmax(axis=0)
        problem = SoftmaxProblem([(X[:40], labels)], classes=3, C=1.0, regularization=0.1)
        even = OwnRows(X[:40], targets, np.ones(40))
        assert objective(F, even)[0] == pytest.approx(problem.site(0).metrics(F.reshape(1, -1))[0][0])


def test_every_estimator_can_personalise(tmp_path: Path) -> None:
    kinds = np.where(X[:, 0] > 0.2, "a", np.where(X[:, 1] > 0, "b", "c"))
    many = tt.PrivateLogisticRegression(colluding=1, random_state=0).fit(X, kinds)
    assert many.softmax_ and many.personalise(X[:500], kinds[:500]).score(X, kinds) > 0.8
    several = tt.PrivateLogisticRegression(random_state=0, effort="quick", epsilon=9.0).fit(X, kinds)
    assert not several.softmax_ and several.personalise(X[:500], kinds[:500]).coef_.shape == (3, 3)
    hinge = tt.PrivateLinearSVC(colluding=1, random_state=0).fit(X, Y)
    assert hinge.personalise(X[:500], ODD[:500]).score(X, ODD) > hinge.score(X, ODD)
    target = 100 * X[:, 0] + 30
    line = tt.PrivateHuberRegressor(colluding=1, random_state=0, target_scale=50.0).fit(X, 50 * X[:, 1])
    assert line.personalise(X[:500], target[:500]).score(X, target) > 0.95
    table = {"a": X[:, 0], "b": X[:, 1]}
    curves = tt.PrivateAdditiveClassifier(
        schema={"a": (-0.5, 0.5), "b": (-0.5, 0.5)}, curves=5, colluding=1, random_state=0
    ).fit(table, Y)
    bend = np.abs(X[:, 0]) > 0.25
    own = curves.personalise({name: values[:500] for name, values in table.items()}, bend[:500])
    assert own.score(table, bend) > 0.9 and own.curve("a").y[0] > own.curve("a").y[32]


def test_unlabelled_rows_are_ignored_and_too_few_rows_keep_the_joint_model() -> None:
    joint = tt.PrivateLogisticRegression(colluding=1, random_state=0, classes=["no", "yes"])
    joint.fit(X, np.where(Y, "yes", "no"))
    labels = np.where(ODD, "yes", "no").astype(object)
    labels[5:] = None
    own = joint.personalise(X[:300], labels[:300])
    assert own.strength_ == float("inf") and np.allclose(own.coef_, joint.coef_)


def test_personal_model_is_labelled_and_can_be_neither_scored_nor_certified(
    joint: Any, tmp_path: Path
) -> None:
    own = joint.personalise(X[:300], ODD[:300])
    with pytest.raises(ParameterError, match="the model and its scores must not leave"):
        tt.private_score(own, X, Y, epsilon=1.0, public=True)
    tt.save_model(own, tmp_path / "own.json")
    text = (tmp_path / "own.json").read_text()
    assert "not to be shared" in text and "certificate" not in text and "strength" not in text
    loaded = tt.load_model(tmp_path / "own.json")
    assert loaded.certificate_ is None and np.array_equal(loaded.predict(X), own.predict(X))
    with pytest.raises(ParameterError, match="the model and its scores must not leave"):
        tt.private_score(loaded, X, Y, epsilon=1.0, public=True)
    with pytest.raises(ParameterError, match="already adapted to one site's rows"):
        own.personalise(X, Y)


def test_rows_and_labels_must_fit_together(joint: Any) -> None:
    with pytest.raises(DataError, match="must have the same number of rows; got 10 and 9"):
        joint.personalise(X[:10], Y[:9])


def test_train_writes_personal_models_only_beside_the_tables(tmp_path: Path, capsys: Any) -> None:
    assert run(["init", str(tmp_path / "study")]) == 0
    assert run(["train", str(tmp_path / "study" / "job.toml"), "--personalise"]) == 0
    told = capsys.readouterr().out
    written = sorted((tmp_path / "study").rglob("*own-model.json"))
    assert written and all(path.parent.name != "run" for path in written)
    assert all("not to be shared" in path.read_text() for path in written)
    assert told.count("do not share this model") == len(written)
    assert run(["evaluate", str(written[0]), str(tmp_path / "study" / "job.toml"), "--epsilon", "1"]) == 1


def test_text_classes_that_a_data_frame_holds_as_objects_are_found_again() -> None:
    pandas = pytest.importorskip("pandas")
    labels = pandas.Series(np.where(Y, "yes", "no"), dtype=object)
    joint = tt.PrivateLogisticRegression(colluding=1, random_state=0).fit(pandas.DataFrame(X), labels)
    own = joint.personalise(pandas.DataFrame(X[:300]), labels[:300])
    assert own.classes_.tolist() == ["no", "yes"] and own.score(pandas.DataFrame(X), labels) > 0.6
