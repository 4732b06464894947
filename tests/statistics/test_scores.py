"""Scores from noisy counts: near scikit-learn's, and within intervals that hold as often as they say."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import taciturn as tt
from taciturn.core.errors import DataError, ParameterError, PrivacyLeakWarning

score = partial(tt.private_score, public=True)
POPULATION = 0.77799  # E max(p, 1 - p): how often the better guess is right


class Known:
    """A classifier whose scores are the rows."""

    def __init__(self, classes):
        self.classes_ = np.array(classes)

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]]) if X.shape[1] == 1 else X


class Margins:
    classes_ = np.array(["no", "yes"])

    def decision_function(self, X):
        return X[:, 0]


def rows(n, seed=0):
    """Calibrated scores, bent towards the ends, and their labels."""
    rng = np.random.default_rng(seed)
    p = expit(2 * rng.standard_normal(n))
    return p[:, None], np.where(rng.uniform(size=n) < p, "yes", "no")


def test_with_little_noise_scores_match_scikit_learn():
    X, y = rows(4000)
    found = score(Known(["no", "yes"]), X, y, epsilon=50, colluding=1, bins=200, random_state=0)
    guess = np.where(X[:, 0] > 0.5, "yes", "no")
    assert found.accuracy.value == pytest.approx(np.mean(guess == y), abs=3e-3)
    np.testing.assert_allclose(found.confusion, confusion_matrix(y, guess), atol=12)
    assert found.auc.value == pytest.approx(roc_auc_score(y == "yes", X[:, 0]), abs=5e-3)


@pytest.mark.parametrize("epsilon", [50, 1])
def test_calibrated_scores_lie_on_the_curve(epsilon):
    held = []
    for seed in range(8):
        X, y = rows(4000, seed=seed)
        found = score(Known(["no", "yes"]), X, y, epsilon=epsilon, colluding=1, random_state=seed)
        points = [point for point in found.calibration["yes"] if point.rows > 50]
        held += [point.share.low <= point.score <= point.share.high for point in points]
    assert len(held) > 100 and np.mean(held) > 0.9


def test_several_classes():
    rng = np.random.default_rng(0)
    raw = rng.dirichlet([0.7, 1.0, 0.5], 6000)
    y = np.array([rng.choice(3, p=p) for p in raw])
    found = score(Known([0, 1, 2]), raw, y, epsilon=50, colluding=1, bins=100, random_state=0)
    assert found.accuracy.value == pytest.approx(np.mean(raw.argmax(axis=1) == y), abs=2e-3)
    np.testing.assert_allclose(found.confusion, confusion_matrix(y, raw.argmax(axis=1)), atol=3)
    assert found.auc.value == pytest.approx(roc_auc_score(y, raw, multi_class="ovr"), abs=5e-3)
    assert set(found.calibration) == {0, 1, 2} and found.certificate.run.dimension == 4


def test_intervals_reach_their_stated_coverage():
    """The truth of the population, 100 samples with noise that matters: binomial(100, 0.9) is above 79."""
    big, labels = rows(200_000, seed=1)
    accuracy = np.mean(np.where(big[:, 0] > 0.5, "yes", "no") == labels)
    assert accuracy == pytest.approx(POPULATION, abs=5e-3)
    auc = roc_auc_score(labels == "yes", big[:, 0])
    held = np.zeros(2, dtype=int)
    widths = []
    for seed in range(100):
        X, y = rows(1000, seed=seed + 10)
        found = score(Known(["no", "yes"]), X, y, epsilon=0.5, colluding=1, level=0.9, random_state=seed)
        held += [
            found.accuracy.low <= accuracy <= found.accuracy.high,
            found.auc.low <= auc <= found.auc.high,
        ]
        widths.append(found.accuracy.high - found.accuracy.low)
    assert held[0] >= 80 and held[1] >= 80
    assert held[0] < 100  # and are no wider than they need be
    alone = 2 * 1.645 * np.sqrt(accuracy * (1 - accuracy) / 1000)
    assert np.mean(widths) > 1.3 * alone  # the noise is in them


def test_intervals_include_the_chance_of_the_sample_where_there_is_hardly_any_noise():
    held = 0
    for seed in range(60):
        X, y = rows(1000, seed=seed + 500)
        wishes = {"epsilon": 50, "colluding": 1, "level": 0.9, "random_state": seed}
        found = score(Known(["no", "yes"]), X, y, **wishes).accuracy
        held += found.low <= POPULATION <= found.high
    assert 46 <= held < 60  # binomial(60, 0.9)


def test_noise_above_the_signal_is_reported():
    X, y = rows(40)
    found = score(Known(["no", "yes"]), X, y, epsilon=0.01, random_state=0)
    assert np.isnan(found.auc.value) and (found.auc.low, found.auc.high) == (0, 1)
    assert (found.accuracy.low, found.accuracy.high) == (0, 1)


def test_a_row_without_a_label_or_without_an_answer_counts_as_wrong():
    X, y = rows(1000)
    y[:300] = "maybe"
    X[300:500] = np.nan
    found = score(Known(["no", "yes"]), X, y, epsilon=50, colluding=1, random_state=0)
    right = np.sum(np.where(X[500:, 0] > 0.5, "yes", "no") == y[500:])
    assert found.accuracy.value == pytest.approx(right / 1000, abs=6e-3)
    assert found.confusion.sum() == pytest.approx(500, abs=8)
    assert found.unanswered.low <= 0.5 <= found.unanswered.high < 0.55


def test_margins_serve_where_there_are_no_probabilities():
    z = np.linspace(-3, 3, 1001)[:, None]
    y = np.where(z[:, 0] > 0, "yes", "no")
    found = score(Margins(), z, y, epsilon=50, colluding=1, random_state=0)
    assert found.accuracy.value == pytest.approx(1.0, abs=6e-3)


def test_estimator_is_scored_with_real_noise_and_the_score_has_a_repr(trained):
    X, y, clf = trained
    found = tt.private_score(clf, X, y, epsilon=1.0, colluding=1, site=np.arange(3000) % 3)
    assert found.accuracy.value == pytest.approx(clf.score(X, y), abs=0.05)
    assert not found.certificate.run.simulated and found.certificate.epsilon <= 1
    assert found.certificate.run.marks == ()
    assert "accuracy=" in repr(found) and "Private score" in found._repr_html_()


@pytest.fixture(scope="module")
def trained():
    """A real fit."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (3000, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    return X, y, tt.PrivateLogisticRegression(sites=3, colluding=1, rounds=5, classes=["no", "yes"]).fit(X, y)


class Centred(FunctionTransformer):
    """Takes the mean of its batch away: one row moves all others."""

    def __init__(self):
        super().__init__(lambda X: X - X.mean(axis=0))


def cells_moved(model, X, y, row):
    """How far the counts of two neighbouring tables are from each other, up to the same noise."""
    changed = X.copy()
    changed[0] = row
    options = {"epsilon": 1.0, "colluding": 1, "sites": 3, "random_state": 0}
    two = [
        tt.private_score(model, rows, y, public=True, **options).released.tables[0] for rows in (X, changed)
    ]
    return np.linalg.norm(np.subtract(*two))


def test_one_row_moves_the_counts_by_no_more_than_is_charged_for(trained):
    """A model that centres its batch would move over 1,000 counts; the charge is for sqrt(2)."""
    X, y, _ = trained
    near = X / 1e6
    model = make_pipeline(Centred(), LogisticRegression()).fit(X, y)
    assert cells_moved(model, near, y, [1e6, 0.0]) <= np.sqrt(2) * (1 + 1e-9)


def test_model_without_a_certificate_is_refused(trained):
    X, y, clf = trained
    options = {"epsilon": 0.1, "colluding": 1, "sites": 3}
    naive = GaussianNB().fit(X, y)
    naive.certificate_ = clf.certificate_
    rehearsed = clone(clf).set_params(random_state=0).fit(X, y)
    free = clone(clf).set_params(epsilon=float("inf"), colluding=None).fit(X, y)
    with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
        leaky = clone(clf).set_params(data_norm="from data").fit(X, y)
    loud = copy.deepcopy(clf)
    loud.certificate_ = replace(loud.certificate_, epsilon=0.01)
    other = copy.deepcopy(clf)
    other.coef_ = naive.theta_[:1]
    patched = copy.deepcopy(clf)
    patched.predict_proba = lambda rows: clf.predict_proba(rows - rows.mean(axis=0))
    refused = {
        naive: "must be an estimator of taciturn with its certificate.*got GaussianNB",
        make_pipeline(Centred(), clf): "got Pipeline",
        rehearsed: "`random_state` must be None",
        free: "fitted without noise",
        leaky: "`data_norm` must be a public number",
        loud: "does not cover its model",
        other: "does not cover its model: the certificate belongs to another release",
        patched: "must be an estimator of taciturn with its certificate",
    }
    for model, words in refused.items():
        with pytest.raises(ParameterError, match=words) as error:
            tt.private_score(model, X, y, **options)
        assert "\n" not in str(error.value)
        found = tt.private_score(model, X, y, public=True, **options)
        assert "the user declared that the scored model is public" in found.certificate.statement()


def test_an_additive_model_with_another_encoder_is_refused(trained):
    class Centring(tt.data.BoundedEncoder):
        def transform(self, X):
            rows = super().transform(X)
            return rows - rows.mean(axis=0)

    X, y, _ = trained
    table = {"a": X[:, 0]}
    clf = tt.PrivateAdditiveClassifier(schema={"a": (-1, 1)}, sites=3, colluding=1, curves=3).fit(table, y)
    options = {"epsilon": 0.1, "colluding": 1, "sites": 3}
    tt.private_score(clf, table, y, **options)
    clf.encoder_ = Centring(clf.encoder_.schema, curves=3, missing="indicator")
    with pytest.raises(ParameterError, match="must be an estimator of taciturn with its certificate"):
        tt.private_score(clf, table, y, **options)


@pytest.mark.parametrize("public", ["no", 1, None])
def test_public_is_true_or_false(trained, public):
    X, y, clf = trained
    with pytest.raises(ParameterError, match="`public` must be True or False"):
        tt.private_score(clf, X, y, epsilon=0.1, public=public)


def test_a_public_model_sees_one_row_at_a_time_in_whatever_form_the_rows_have(trained):
    X, y, _ = trained
    X, y = X[:60], y[:60]
    seen = []

    class Spy(Margins):
        def decision_function(self, X):
            seen.append(X)
            return np.asarray(X["a"] if isinstance(X, dict) else np.asarray(X)[:, 0], dtype=float)

    forms = [X, X.tolist(), {"a": X[:, 0].tolist(), "b": X[:, 1]}, pandas.DataFrame(X, columns=["a", "b"])]
    options = {"epsilon": 1.0, "random_state": 0, "large_delta": True}
    found = [tt.private_score(Spy(), form, y, public=True, **options).released.tables[0] for form in forms]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    assert len(seen) == 60 * len(forms) and {
        len(one["a"] if isinstance(one, dict) else one) for one in seen
    } == {1}
    scipy_rows = csr_array(X)
    clf = LogisticRegression().fit(X, y)
    assert tt.private_score(clf, scipy_rows, y, public=True, **options).accuracy.value > 0


class Drifting(Margins):
    """A model that centres each row by all rows that it was shown before."""

    def __init__(self):
        self.rows, self.mean = 0, 0.0

    def decision_function(self, X):
        self.rows += len(X)
        self.mean += (X[:, 0].sum() - self.mean * len(X)) / self.rows
        return X[:, 0] - self.mean


def test_a_public_model_that_changes_while_it_predicts_is_refused(tmp_path):
    X, y = rows(300)
    with (
        tt.Budget(tmp_path / "budget.sqlite", epsilon=1) as budget,
        pytest.raises(ParameterError, match="`clf` changes while it predicts"),
    ):
        score(Drifting(), X, y, epsilon=0.5)
    assert budget.runs == ()


def test_model_that_fails_for_some_rows_leaves_them_unanswered():
    class Picky(Known):
        def predict_proba(self, X):
            if X[0, 0] > 0.5 or self.classes_[0] == "never":
                raise RuntimeError("a row")
            return super().predict_proba(X)

    X, y = rows(1000)
    found = score(Picky(["no", "yes"]), X, y, epsilon=50, colluding=1, random_state=0)
    assert found.unanswered.value == pytest.approx(np.mean(X[:, 0] > 0.5), abs=0.02)
    with pytest.raises(ParameterError, match="fails for every row, with RuntimeError; no noise was drawn"):
        score(Picky(["never", "yes"]), X, np.full(1000, "yes"), epsilon=50, colluding=1, random_state=0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"bins": 7}, "`bins` must be even"), ({"level": 2.0}, "`level`"), ({"epsilon": -1}, "`epsilon`")],
)
def test_inconsistent_settings_are_refused_before_anything_is_spent(changes, words):
    X, y = rows(50)
    with pytest.raises(ParameterError, match=words):
        score(Known(["no", "yes"]), X, y, **({"epsilon": 1.0} | changes))
    with pytest.raises(ParameterError, match="fitted classifier"):
        score(object(), X, y, epsilon=1.0)
    with pytest.raises(DataError, match="one entry per row"):
        score(Known(["no", "yes"]), X[:-1], y, epsilon=1.0)


def test_a_model_that_is_worse_than_a_constant_prediction_is_reported():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (4000, 2))
    y = X[:, 0] + 0.2 * rng.standard_normal(4000) > 0
    model = tt.PrivateLogisticRegression(epsilon=2, sites=3, colluding=1, random_state=0).fit(X, y)
    usual = {"epsilon": 1.0, "sites": 3, "colluding": 1, "random_state": 0}
    good, bad = (tt.private_score(model, X, told, **usual) for told in (y, ~y))
    assert not good.worse_than_constant and "constant" not in good.text()
    assert bad.worse_than_constant and "worse than a constant prediction" in bad.text()
    assert bad.facts()["worse_than_constant"] and 0.4 < bad.facts()["constant"] < 0.6
