"""Estimators on whitened rows: the paper's method in better coordinates, saved, loaded and scored."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import CertificateError, ParameterError
from taciturn.data.tables.clipping import whitened_factors
from taciturn.estimators.model_file import read_model
from taciturn.questions.shipped.evaluate import model_scores

SPREAD = np.array([1.0, 0.5, 0.2, 0.1, 0.05, 0.02])


def table(rows=6000, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, 6)) * SPREAD
    X /= 1.2 * np.quantile(np.linalg.norm(X, axis=1), 0.99)
    logits = 6 * (X / SPREAD) @ np.array([0.1, -0.3, 0.4, 0.5, -0.5, 0.4])
    return X, generator.random(rows) < 1 / (1 + np.exp(-logits))


def fitted(**more):
    asked = {"epsilon": 3.0, "delta": 1e-5, "sites": 4, "method": "penalty", "effort": "quick"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tt.PrivateLogisticRegression(**{**asked, "random_state": 0, **more}).fit(*table())


@pytest.fixture(scope="module")
def model():
    return fitted(whiten=True)


def test_it_is_better_than_on_rows_as_they_are_and_chosen_by_itself(model):
    X, y = table(seed=1)
    raw, chosen = fitted(whiten=False), fitted(effort="full")
    assert model.score(X, y) > raw.score(X, y) + 0.02
    assert chosen.whitening_ is not None and raw.whitening_ is None
    assert fitted().whitening_ is None  # without a rehearsal nothing is whitened unasked
    assert chosen.score(X, y) > raw.score(X, y) + 0.02
    assert model.certificate_.run.method == "penalty" and model.certificate_.run.moments == 2
    assert model.certificate_.epsilon <= 3.0
    model.certificate_.verify()


def test_scores_are_those_of_rows_shortened_to_norm_1_in_the_coordinates(model):
    X, _ = table(seed=1)
    V = model.whitening_
    r = np.linalg.norm(X @ V[:, :-1].T + V[:, -1], axis=1)
    assert (r > 1).any() and (r < 1).any()
    expected = (X @ model.coef_[0] + model.intercept_[0]) / np.maximum(r, 1.0)
    short = np.linalg.norm(X, axis=1) <= 1.0
    np.testing.assert_allclose(model.decision_function(X)[short], expected[short], rtol=1e-9)
    assert np.array_equal(whitened_factors(X, None), np.ones(len(X)))


def test_it_is_saved_and_loaded_and_its_certificate_covers_the_coordinates(model, tmp_path):
    X, _ = table(seed=1)
    tt.save_model(model, tmp_path / "model.json")
    back = tt.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    assert back.certificate_.epsilon == model.certificate_.epsilon
    file = read_model(tmp_path / "model.json")
    columns = {name: X[:, k] for k, name in enumerate(file.features)}
    short = np.linalg.norm(X, axis=1) <= 1.0
    found = model_scores(file, columns)[short, 0]
    np.testing.assert_allclose(found, model.predict_proba(X)[short, 1], rtol=1e-9)
    stretched = file.model_copy(update={"whitening": (2 * np.array(file.whitening)).tolist()})
    (tmp_path / "model.json").write_text(stretched.to_json())
    with pytest.raises(CertificateError):
        tt.load_model(tmp_path / "model.json")


def test_site_can_personalise_a_whitened_model(model):
    X, y = table(rows=400, seed=2)
    own = model.personalise(X, y)
    assert own.score(X, y) >= model.score(X, y) - 0.02
    np.testing.assert_array_equal(own.whitening_, model.whitening_)


def test_persons_and_regressions_are_whitened_too():
    X, y = table()
    ids = np.arange(len(X)) // 2
    site = ids % 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = tt.PrivateLogisticRegression(
            epsilon=3.0, sites=4, method="penalty", effort="quick", whiten=True, random_state=0
        ).fit(X, y, site=site, person=ids)
        reg = tt.PrivateHuberRegressor(
            epsilon=3.0, sites=4, method="penalty", effort="quick", whiten=True, random_state=0
        ).fit(X, X @ np.arange(6.0))
    assert clf.certificate_.run.unit == "person" and clf.certificate_.run.moments == 2
    assert reg.certificate_.run.moments == 2 and reg.score(X, X @ np.arange(6.0)) > 0.1
    for found in (clf, reg):
        found.certificate_.verify()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"whiten": True, "delta": 0.0}, "`whiten` must be None or False for this run"),
        ({"whiten": "yes"}, "`whiten` must be True, False or None"),
    ],
)
def test_what_cannot_be_whitened_is_refused(change, match):
    with pytest.raises(ParameterError, match=match):
        fitted(**change)


def test_a_model_of_curves_stays_a_sum_of_curves():
    age = np.random.default_rng(0).uniform(0, 100, 4000)
    clf = tt.PrivateAdditiveClassifier(
        schema={"age": (0, 100)}, method="penalty", effort="quick", whiten=True, random_state=0
    )
    with pytest.raises(ParameterError, match="would not be additive"):
        clf.fit({"age": age}, age > 50)
    clf.set_params(whiten=None).fit({"age": age}, age > 50)
    assert clf.whitening_ is None and clf.curve("age").y[-1] > 0
