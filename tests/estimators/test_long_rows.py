"""Rows of any norm: fit and prediction clip alike, in every form of a saved model."""

from __future__ import annotations

import csv
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

import taciturn as tt
from support.bare_models import bare_model
from taciturn.cli.app import run
from taciturn.core.errors import ClippedRowsWarning


@pytest.fixture(scope="module")
def long_rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows whose norms run from 0.1 to 30."""
    made = np.random.default_rng(0)
    X = made.normal(size=(600, 4))
    X *= np.geomspace(0.1, 30, 600)[made.permutation(600), None] / np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "yes", "no")


def _fit(X, y, **options) -> tt.PrivateLogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClippedRowsWarning)
        return tt.PrivateLogisticRegression(random_state=0, effort="quick", **options).fit(X, y)


@pytest.mark.parametrize("norm", [1.0, 3.0])
def test_a_fit_then_a_prediction_lose_nothing_against_clipping_by_hand(long_rows, norm):
    X, y = long_rows
    clipped = X * np.minimum(1.0, norm / np.linalg.norm(X, axis=1))[:, None]
    given, by_hand = _fit(X, y, data_norm=norm), _fit(clipped, y, data_norm=norm)
    assert given.predict_proba(X) == pytest.approx(by_hand.predict_proba(clipped), abs=1e-9)
    assert np.array_equal(given.predict(sparse.csr_array(X)), given.predict(X))
    assert given.decision_function(1e9 * X) == pytest.approx(given.decision_function(1e6 * X))


def test_every_form_of_the_model_gives_the_same_numbers(long_rows, tmp_path):
    X, y = long_rows
    fitted = _fit(X, y, data_norm=2.0)
    tt.save_model(fitted, tmp_path / "model.json")
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["x0", "x1", "x2", "x3"], *X.tolist()])
    arguments = [str(tmp_path / name) for name in ("model.json", "rows.csv", "out.csv")]
    assert run(["predict", *arguments[:2], "--out", arguments[2]]) == 0
    with (tmp_path / "out.csv").open() as file:
        printed = list(csv.DictReader(file))
    chance = fitted.predict_proba(X)
    loaded, bare = tt.load_model(tmp_path / "model.json"), bare_model(tmp_path / "model.json")
    assert loaded.predict_proba(X) == pytest.approx(chance, abs=1e-12)
    assert bare.predict_proba(X) == pytest.approx(chance, abs=1e-12)
    clipped = X * np.minimum(1.0, 2.0 / np.linalg.norm(X, axis=1))[:, None]
    alone = bare[-1]  # scikit-learn's own estimator, given rows that were clipped by hand
    assert type(alone).__module__.startswith("sklearn.")
    assert alone.predict_proba(clipped) == pytest.approx(chance, abs=1e-12)
    assert [row["prediction"] for row in printed] == fitted.predict(X).tolist()
    assert [float(row["probability"]) for row in printed] == pytest.approx(chance.max(axis=1), abs=1e-12)


def test_a_norm_taken_from_the_data_is_kept_with_the_model(long_rows, tmp_path):
    X, y = long_rows
    with pytest.warns(tt.errors.PrivacyLeakWarning):
        fitted = tt.PrivateLogisticRegression(random_state=0, effort="quick", data_norm="from data").fit(X, y)
    tt.save_model(fitted, tmp_path / "model.json")
    assert fitted.data_norm_ == pytest.approx(30.0)
    assert np.array_equal(tt.load_model(tmp_path / "model.json").predict(2 * X), fitted.predict(2 * X))


@pytest.mark.parametrize("options", [{"epsilon": float("inf")}, {"random_state": 0, "effort": "quick"}])
def test_fit_without_privacy_shows_the_share_of_clipped_rows(long_rows, options):
    X, y = long_rows
    with pytest.warns(ClippedRowsWarning, match=r"5\d% of the rows have a norm above `data_norm` = 1"):
        tt.PrivateLogisticRegression(**options).fit(X, y)


def test_private_fit_shows_nothing_about_the_rows(long_rows):
    X, y = long_rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tt.PrivateLogisticRegression(effort="quick", classes=["no", "yes"]).fit(X, y)


@pytest.mark.parametrize("what", ["cells", "labels"])
def test_rehearsal_shows_the_share_of_empty_rows_and_a_private_fit_does_not(what):
    """An empty cell makes a row of zeros by default, and so does an undeclared label."""
    rng = np.random.default_rng(0)
    table = {name: np.where(rng.random(900) < 0.3, np.nan, rng.random(900)) for name in "abc"}
    y = np.where(np.nan_to_num(table["a"]) > 0.5, "yes", "no")
    if what == "labels":
        table, y = {name: rng.random(900) for name in "abc"}, np.where(rng.random(900) < 0.66, "maybe", y)
    encoder = tt.data.BoundedEncoder(tt.data.Schema(tuple(tt.data.Number(name, 0, 1) for name in "abc")))
    fit = {"max_rounds": 5, "colluding": 1, "classes": ["no", "yes"]}
    rehearsal = make_pipeline(encoder, tt.PrivateLogisticRegression(random_state=0, **fit))
    with pytest.warns(tt.errors.EmptyRowsWarning, match=r"6\d% of the rows count as zeros.*`taciturn.check`"):
        rehearsal.fit(table, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(encoder, tt.PrivateLogisticRegression(**fit)).fit(table, y)
        rehearsal.fit({name: rng.random(900) for name in "abc"}, np.where(rng.random(900) < 0.5, "no", "yes"))
