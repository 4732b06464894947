"""model.json: plain, checked when read, and the same predictions wherever it is loaded."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from support.bare_models import bare_model
from taciturn.core.errors import DataError, ParameterError
from taciturn.data import BoundedEncoder, Category, Number, Schema
from taciturn.estimators import (
    PrivateHuberRegressor,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    load_model,
    save_model,
)
from taciturn.estimators.model_file import Model, read_model


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateLinearSVC, PrivateHuberRegressor])
def test_back_into_the_estimator_and_into_scikit_learn(kind, classes, rows, quick, tmp_path):
    X, _ = rows
    y = np.digitize(X[:, 0], [-0.2, 0.2][: classes - 1])
    fitted = kind(random_state=0, **quick).fit(X, y.astype(float) if kind is PrivateHuberRegressor else y)
    save_model(fitted, tmp_path / "model.json")
    back, bare = load_model(tmp_path / "model.json"), bare_model(tmp_path / "model.json")
    assert type(back[-1]) is kind and type(bare).__module__.startswith("sklearn.")
    for loaded in (back, bare):
        assert np.array_equal(loaded.predict(X), fitted.predict(X))
    if kind is PrivateLogisticRegression:
        assert bare.predict_proba(X) == pytest.approx(fitted.predict_proba(X))


def test_model_file_can_be_used_in_five_lines_without_taciturn(rows, quick, tmp_path):
    X, y = rows
    fitted = PrivateLogisticRegression(**quick).fit(X, y)
    save_model(fitted, tmp_path / "model.json")
    model = json.loads((tmp_path / "model.json").read_text())
    bare = LogisticRegression()
    bare.coef_, bare.intercept_ = np.array(model["coef"]), np.array(model["intercept"])
    bare.classes_ = np.array(model["classes"])
    assert np.array_equal(bare.predict(X), fitted.predict(X))


def test_model_file_keeps_column_names_and_certificate(rows, quick):
    pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    X, y = rows
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = Model.of(PrivateLogisticRegression(**quick).fit(frame, y))
    assert model.features == list("abcd") and model.settings["epsilon"] == 1.0
    assert len(model.certificate) == 64
    table = {name: [str(cell) for cell in frame[name]] for name in frame}
    assert np.array_equal(model.encoder().transform(table), X)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m.pop("coef"), "is not a model of taciturn: `coef` must be given"),
        (lambda m: m.update(format="other"), "is not a model of taciturn: `format`"),
        (lambda m: m.update(coef=[[1.0]]), "must have matching lengths"),
        (lambda m: m.update(intercept=[]), "must have matching lengths"),
        (lambda m: m.pop("classes"), "a classifier needs `classes`"),
        (lambda m: m.update(schema={"fields": []}), "`schema`: `fields` must contain"),
        (
            lambda m: m.update(schema={"fields": [{"name": "a", "low": 0, "high": 1}]}),
            "`features` must be the features",
        ),
        (lambda m: m.update(coef=[["__import__", 1, 2, 3]]), "is not a model of taciturn"),
    ],
)
def test_non_model_file_is_refused_in_one_line(change, words, rows, quick, tmp_path):
    model = json.loads(Model.of(PrivateLogisticRegression(**quick).fit(*rows)).to_json())
    change(model)
    (tmp_path / "m.json").write_text(json.dumps(model))
    with pytest.raises(DataError, match=words) as error:
        load_model(tmp_path / "m.json")
    assert "\n" not in str(error.value) and "m.json" in str(error.value)


def test_model_file_keeps_the_encoder_and_its_settings(rows, quick, tmp_path):
    schema = Schema((Number("age", 0, 100), Category("sex", ("f", "m"))))
    encoder = BoundedEncoder(schema, rows="scale", missing="field")
    rng = np.random.default_rng(0)
    table = {"age": rng.uniform(0, 100, 900), "sex": np.array(["f", "m"])[rng.integers(0, 2, 900)]}
    fitted = PrivateLogisticRegression(**quick).fit(encoder.fit_transform(table), table["sex"])
    save_model(fitted, tmp_path / "m.json", schema=encoder)
    model = read_model(tmp_path / "m.json")
    assert np.array_equal(model.encoder().transform(table), encoder.transform(table))
    save_model(fitted, tmp_path / "m.json", schema=schema)
    assert not np.array_equal(
        read_model(tmp_path / "m.json").encoder().transform(table), encoder.transform(table)
    )
    with pytest.raises(
        ParameterError, match="`schema` must give the 3 features that the model was fitted to"
    ):
        save_model(fitted, tmp_path / "m.json", schema=BoundedEncoder(schema, intercept=True))


def test_a_model_without_privacy_and_numbers_of_numpy(rows, tmp_path):
    fitted = PrivateLogisticRegression(epsilon=float("inf"), data_norm=np.float32(2), rounds=3).fit(*rows)
    save_model(fitted, tmp_path / "m.json")
    back = load_model(tmp_path / "m.json")
    assert back[-1].epsilon == float("inf") and back[-1].data_norm == 2.0


def test_error_names_what_cannot_be_saved(rows, tmp_path):
    with pytest.raises(ParameterError, match=r"got Pipeline. For a pipeline .* the last step, model\[-1\]"):
        save_model(make_pipeline(PrivateLogisticRegression()), tmp_path / "m.json")
    with pytest.raises(NotFittedError):
        save_model(PrivateLogisticRegression(), tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()
