from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import taciturn as tt
from taciturn.core.errors import BudgetExceeded, ParameterError

DRAW = np.random.default_rng(0)
ROWS = 4000
TABLE = {
    "age": DRAW.uniform(0, 100, ROWS),
    "gain": np.expm1(DRAW.uniform(0, np.log1p(1e5), ROWS)),
    "ward": DRAW.choice(["medical", "surgical"], ROWS),
    "smoker": DRAW.choice(["yes", "no"], ROWS),
}
SCHEMA = tt.data.Schema(
    (
        tt.data.Number("age", 0, 100),
        tt.data.Number("gain", 0, 1e5, log=True),
        tt.data.Category("ward", ("medical", "surgical", "icu")),
        tt.data.Boolean("smoker"),
    )
)
SICK = (np.abs(TABLE["age"] - 50) > 25) ^ (DRAW.random(ROWS) < 0.05)


def fitted(**parameters: Any) -> tt.PrivateAdditiveClassifier:
    usual = {"schema": SCHEMA, "curves": 9, "colluding": 1, "random_state": 0, "epsilon": 3.0}
    return tt.PrivateAdditiveClassifier(**usual | parameters).fit(TABLE, SICK)


@pytest.fixture(scope="module")
def clf() -> tt.PrivateAdditiveClassifier:
    return fitted()


def test_a_bend_is_learnt_within_the_budget(clf: Any) -> None:
    assert clf.score(TABLE, SICK) > 0.9
    assert clf.certificate_.epsilon <= 3.0 and clf.plan_.rounds > 1
    curve = clf.curve("age")
    assert curve.x[0] == 0 and curve.x[32] == 50 and curve.x[-1] == 100
    assert min(curve.y[0], curve.y[-1]) > 1 > -1 > curve.y[32]
    assert clf.n_features_in_ == 4 and clf.feature_names_in_.tolist() == list(SCHEMA.names)


def test_the_curves_and_their_zeros_add_up_to_the_score(clf: Any) -> None:
    some = {name: values[:50] for name, values in TABLE.items()}
    total = np.zeros(50)
    for name in ("age", "gain"):
        curve = clf.curve(name)
        scale = np.log1p if name == "gain" else np.asarray
        total += np.interp(scale(some[name]), scale(np.array(curve.x)), curve.y)
    for name in ("ward", "smoker"):
        curve = clf.curve(name)
        total += [curve.y[curve.x.index(value)] for value in some[name]]
    apart = clf.decision_function(some) - total
    assert np.ptp(apart) < 1e-9, "what is left is one constant"


def test_a_missing_value_has_its_own_effect(clf: Any) -> None:
    one = {name: [values[0], values[0]] for name, values in TABLE.items()}
    one["age"] = [50.0, None]
    known, missing = clf.decision_function(one)
    curve = clf.curve("age")
    assert missing - known == pytest.approx(float(curve.missing[0]) - curve.y[32], abs=1e-9)


def test_curves_are_centred_by_public_numbers(clf: Any) -> None:
    for name in SCHEMA.names:
        assert clf.curve(name).y.mean() == pytest.approx(0, abs=1e-9)
    assert clf.curve("ward").x == ("medical", "surgical", "icu") and clf.curve("smoker").x == ("no", "yes")


def test_the_page_has_a_panel_for_every_column(clf: Any, tmp_path: Path) -> None:
    page = clf.plot()
    assert [axes.get_title() for axes in page.axes] == list(SCHEMA.names)
    assert page._repr_png_()[0].startswith(b"\x89PNG")
    assert "epsilon = 3.00" in page.get_suptitle()


def test_a_saved_model_keeps_its_curves(clf: Any, tmp_path: Path) -> None:
    tt.save_model(clf, tmp_path / "model.json")
    loaded = tt.load_model(tmp_path / "model.json")
    assert loaded.certificate_.epsilon == clf.certificate_.epsilon
    assert np.array_equal(loaded.decision_function(TABLE), clf.decision_function(TABLE))
    assert np.array_equal(loaded.curve("age").y, clf.curve("age").y)
    assert len(loaded.plot().axes) == 4
    with pytest.raises(ParameterError, match="has its own"):
        tt.save_model(clf, tmp_path / "again.json", schema=SCHEMA)


def test_several_classes_and_dates() -> None:
    days = np.datetime64("2020-01-01") + DRAW.integers(0, 366, 2000)
    month = days.astype("datetime64[M]").astype(int) % 12
    y = np.where(month < 4, "spring", np.where(month < 8, "summer", "winter"))
    schema = {"day": tt.data.Date("day", "2020-01-01", "2020-12-31")}
    model = tt.PrivateAdditiveClassifier(schema=schema, curves=9, colluding=1, random_state=0, epsilon=5.0)
    curve = model.fit({"day": days}, y).curve("day")
    assert model.score({"day": days}, y) > 0.9
    assert curve.x[0] == dt.date(2020, 1, 1) and curve.y.shape == (65, 3)
    assert curve.y[0].argmax() == 0 and curve.y[-1].argmax() == 2
    assert [text.get_text() for text in model.plot().legends[0].get_texts()] == ["spring", "summer", "winter"]


def test_a_regression_has_curves_in_the_units_of_the_target(tmp_path: Path) -> None:
    y = (TABLE["age"] - 50) ** 2
    model = tt.PrivateAdditiveRegressor(
        schema=SCHEMA, curves=9, colluding=1, random_state=0, target_scale=1000.0
    ).fit(TABLE, y)
    assert model.score(TABLE, y) > 0.9
    curve = model.curve("age")
    assert 1500 < curve.y[0] - curve.y[32] < 3500 and curve.label == "effect on the target"
    tt.save_model(model, tmp_path / "model.json")
    assert tt.load_model(tmp_path / "model.json").curve("age").label == curve.label


def test_few_records_get_straight_lines() -> None:
    small = {name: values[:200] for name, values in TABLE.items()}
    model = tt.PrivateAdditiveClassifier(schema=SCHEMA, colluding=1, random_state=0).fit(small, SICK[:200])
    assert model.encoder_.curves == 1 and model.encoder_.missing_as == "field"
    assert model.coef_.shape[1] == len(model.encoder_.get_feature_names_out())
    y = model.curve("age").y
    assert np.allclose(np.diff(y, 2), 0)
    assert fitted(curves="auto").encoder_.curves == 9


def test_persons_sites_and_budgets_work_as_in_every_estimator(tmp_path: Path) -> None:
    person = np.arange(ROWS) // 2
    model = tt.PrivateAdditiveClassifier(schema=SCHEMA, curves=3, colluding=1, random_state=0)
    model.fit(TABLE, SICK, site=person % 4, person=person)
    assert model.certificate_.run.unit == "person" and model.trace_.settings["names"][0] == "site 0"
    with tt.Budget(tmp_path / "budget.sqlite", epsilon=1.0, delta=1e-5):
        real = clone(model).set_params(random_state=None, epsilon=0.8)
        real.fit(TABLE, SICK, site=person % 4)
        with pytest.raises(BudgetExceeded):
            real.fit(TABLE, SICK, site=person % 4)


def test_it_is_a_step_of_scikit_learn() -> None:
    import pandas as pd

    frame = pd.DataFrame(TABLE)
    model = tt.PrivateAdditiveClassifier(schema=SCHEMA, curves=5, colluding=1, random_state=0)
    assert cross_val_score(model, frame, SICK, cv=2).mean() > 0.8


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"schema": None}, "`schema` must give the public facts"),
        ({"schema": {"age": 3}}, "`age` must be"),
        ({"curves": 0}, "`curves` must be at least 1"),
        ({"data_norm": 2.0}, "`data_norm` must be left out"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fitted(**parameters)


def test_unknown_curves_are_refused(clf: Any) -> None:
    with pytest.raises(ParameterError, match="`name` must be one of age, gain, ward, smoker"):
        clf.curve("size")


@pytest.mark.parametrize("colluding", [None, 1])
def test_few_records_with_many_columns_are_not_worse_than_a_linear_model(colluding: int | None) -> None:
    """With 456 rows and 30 columns, the noise of curves would outweigh their gain."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:456], y[:456]
    low, high = X.min(axis=0), X.max(axis=0)
    schema = {f"c{k}": (float(low[k]), float(high[k])) for k in range(30)}
    table = {name: X[:, k] for k, name in enumerate(schema)}
    rows = (2 * (X - low) / (high - low) - 1) / np.sqrt(30)
    asked = {"sites": 5, "colluding": colluding, "random_state": 0}
    asked |= {} if colluding else {"effort": "quick"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        curves = tt.PrivateAdditiveClassifier(schema=schema, **asked).fit(table, y)
        lines = tt.PrivateLogisticRegression(**asked).fit(rows, y)
        numbers = tt.PrivateAdditiveRegressor(schema=schema, **asked).fit(table, y.astype(float))
    assert curves.encoder_.curves == numbers.encoder_.curves == 1
    assert curves.coef_.shape == (1, 30) and numbers.coef_.shape == (30,)
    np.testing.assert_allclose(curves.predict_proba(table), lines.predict_proba(rows), atol=1e-6)
    assert np.isclose(curves.curve("c3").missing, 0.0, atol=1e-9)


def test_sites_without_masks_need_more_records_for_curves() -> None:
    def knots(**more: Any) -> int:
        model = tt.PrivateAdditiveClassifier(schema=SCHEMA, **more)
        return model._knots(SCHEMA, 4000, 20)

    assert knots(colluding=1) == 9 and knots() == 1
