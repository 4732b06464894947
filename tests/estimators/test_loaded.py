"""A loaded model: encoder, estimator and certificate in one pipeline that takes the raw table."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

import taciturn as tt
from taciturn.cli.app import run
from taciturn.core.errors import CertificateError, DataError, ParameterError, TaciturnWarning
from taciturn.data import BoundedEncoder, Category, Number, Schema
from taciturn.estimators.model_file import Model

SCHEMA = Schema((Number("age", 0, 100), Category("ward", ("medical", "surgical"))))
TABLE = {
    "age": ["70", "", "31", "n/a", "12"],
    "ward": ["medical", "surgical", "dental", "medical", "surgical"],
}
BAD = [False, True, False, True, False]


@pytest.fixture(scope="module")
def fitted():
    made = np.random.default_rng(0)
    table = {
        "age": made.uniform(0, 100, 900),
        "ward": np.array(["medical", "surgical"])[made.integers(0, 2, 900)],
    }
    model = make_pipeline(
        BoundedEncoder(SCHEMA), tt.PrivateLogisticRegression(random_state=0, effort="quick", max_rounds=3)
    )
    return model.fit(table, np.where(table["age"] > 50, "old", "young"))


@pytest.fixture(scope="module")
def path(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.json"
    tt.save_model(fitted, path)
    return path


def test_it_takes_the_raw_table_and_predicts_as_the_fitted_pipeline(fitted, path):
    loaded, good = tt.load_model(path), ~np.array(BAD)
    assert isinstance(loaded, Pipeline) and isinstance(loaded[-1], tt.PrivateLogisticRegression)
    assert np.array_equal(loaded.predict(TABLE)[good], fitted.predict(TABLE)[good])
    assert loaded.predict_proba(TABLE)[good] == pytest.approx(fitted.predict_proba(TABLE)[good], abs=1e-12)
    rows = [dict(zip(TABLE, cells, strict=True)) for cells in zip(*TABLE.values(), strict=True)]
    assert loaded.predict(rows).tolist() == loaded.predict(TABLE).tolist()


def test_it_keeps_the_certificate_of_the_fit(fitted, path):
    kept = tt.load_model(path).certificate_
    assert kept is not None and kept.to_json() == fitted[-1].certificate_.to_json()
    kept.verify()


def test_a_record_that_cannot_be_read_gets_no_answer(path):
    loaded = tt.load_model(path)
    assert loaded.unreadable_rows(TABLE).tolist() == BAD
    assert [found is None for found in loaded.predict(TABLE)] == BAD
    for numbers in (loaded.predict_proba(TABLE)[:, 0], loaded.decision_function(TABLE)):
        assert np.isnan(numbers).tolist() == BAD
    assert loaded.unread_columns(TABLE) == [(), ("age",), ("ward",), ("age",), ()]
    whole = {name: [cells[0], cells[4]] for name, cells in TABLE.items()}
    assert loaded.predict(whole).dtype.kind == "U"


def test_unreadable_record_gets_the_fallback_that_the_user_chose(path):
    with pytest.raises(DataError, match=r"2 of 5 records .* `unreadable_rows\(X\)` shows which"):
        tt.load_model(path, unreadable="raise").predict(TABLE)
    zeros = tt.load_model(path, unreadable="zeros").predict(TABLE)
    assert None not in zeros.tolist() and zeros[1] == zeros[3]
    with pytest.raises(ParameterError, match="`unreadable` must be"):
        tt.load_model(path, unreadable="drop")


def test_a_score_ignores_unreadable_rows_and_reports_them(path):
    loaded, y = tt.load_model(path), ["old", "old", "young", "old", "young"]
    said = loaded.predict(TABLE)
    right = np.mean([said[k] == y[k] for k in (0, 2, 4)])
    with pytest.warns(TaciturnWarning, match="2 of 5 records cannot be read"):
        assert loaded.score(TABLE, y) == pytest.approx(right)


def test_it_is_a_pipeline_that_scikit_learn_can_copy(path):
    loaded = tt.load_model(path, unreadable="zeros")
    assert clone(loaded).unreadable == "zeros" and not hasattr(clone(loaded)[-1], "coef_")
    assert not hasattr(tt.load_model(path)[:1], "predict_proba")


def test_certificate_beside_a_model_is_loaded_only_if_it_belongs_to_it(fitted, tmp_path):
    (tmp_path / "model.json").write_text(Model.of(fitted[-1], schema=fitted[0]).to_json())
    assert tt.load_model(tmp_path / "model.json").certificate_ is None
    certificate = fitted[-1].certificate_
    (tmp_path / "certificate.json").write_text(certificate.to_json())
    assert tt.load_model(tmp_path / "model.json").certificate_.epsilon == certificate.epsilon
    (tmp_path / "certificate.json").write_text(certificate.to_json() + " ")
    with pytest.warns(TaciturnWarning, match="is not the one that model.json names"):
        assert tt.load_model(tmp_path / "model.json").certificate_ is None


def test_a_figure_that_was_edited_in_the_model_file_is_refused(path, tmp_path):
    entries = json.loads(path.read_text())
    entries["certificate"]["epsilon"] /= 2
    (tmp_path / "model.json").write_text(json.dumps(entries))
    with pytest.raises(CertificateError, match=r"model.json: `epsilon` is stated as"):
        tt.load_model(tmp_path / "model.json")


def test_a_model_of_arrays_takes_arrays_and_tables_of_its_columns(tmp_path):
    made = np.random.default_rng(1)
    X = made.uniform(-0.5, 0.5, size=(300, 2))
    model = tt.PrivateHuberRegressor(random_state=0, effort="quick", max_rounds=3).fit(X, X[:, 0])
    tt.save_model(model, tmp_path / "model.json")
    loaded = tt.load_model(tmp_path / "model.json")
    assert np.array_equal(loaded.predict(X), model.predict(X)) and not hasattr(loaded, "predict_proba")
    table = {"x1": [0.5, "?"], "x0": ["0.25", 0.1]}
    assert loaded.predict(table)[0] == pytest.approx(model.predict([[0.25, 0.5]])[0], abs=1e-12)
    assert np.isnan(loaded.predict(table)).tolist() == [False, True]


def test_predict_command_flags_unreadable_records_in_a_column(path, tmp_path, capsys):
    with (tmp_path / "new.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(TABLE), *zip(*TABLE.values(), strict=True)])
    assert run(["predict", str(path), str(tmp_path / "new.csv")]) == 0
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [line["unreadable"] for line in lines] == ["", "age", "ward", "age", ""]
    assert [line["prediction"] == line["probability"] == "" for line in lines] == BAD
    said = tt.load_model(path).predict(TABLE)
    assert [line["prediction"] for line in lines] == ["" if found is None else found for found in said]
    assert run(["predict", str(path), str(tmp_path / "new.csv"), "--out", str(tmp_path / "out.csv")]) == 0
    assert "2 records cannot be read" in capsys.readouterr().out


def test_predict_command_creates_no_folders(path, tmp_path, capsys):
    (tmp_path / "new.csv").write_text("age,ward\n3,medical\n")
    out = tmp_path / "typo" / "out.csv"
    assert run(["predict", str(path), str(tmp_path / "new.csv"), "--out", str(out)]) == 1
    assert "`--out` must be in an existing folder" in capsys.readouterr().err and not out.parent.exists()


def test_loaded_model_has_no_score_without_a_readable_record_and_is_not_saved_again(path, tmp_path):
    loaded = tt.load_model(path)
    with pytest.raises(DataError, match="got 2 unreadable records"):
        loaded.score({"age": ["", "?"], "ward": ["medical", "medical"]}, ["old", "young"])
    with pytest.raises(ParameterError, match="copy the file"):
        tt.save_model(loaded, tmp_path / "again.json")
    with pytest.raises(ParameterError, match="copy the file"):
        tt.save_model(loaded[-1], tmp_path / "again.json")
    assert np.isfinite(loaded[-1].predict_log_proba(np.full((1, 3), 0.1))).all()


def test_logarithm_of_a_vanishing_probability_is_finite(path):
    loaded = tt.load_model(path)
    loaded[-1].coef_ = loaded[-1].coef_ * 1e6
    assert np.isfinite(loaded.predict_log_proba({"age": ["90"], "ward": ["medical"]})).all()
