"""Scores from noisy counts: near scikit-learn's, and within intervals that hold as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import confusion_matrix, roc_auc_score

import taciturn as tt
from taciturn.errors import DataError, ParameterError

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


def test_with_hardly_any_noise_they_are_those_of_scikit_learn():
    X, y = rows(4000)
    found = tt.private_score(Known(["no", "yes"]), X, y, epsilon=50, colluding=1, bins=200, random_state=0)
    guess = np.where(X[:, 0] > 0.5, "yes", "no")
    assert found.accuracy.value == pytest.approx(np.mean(guess == y), abs=3e-3)
    np.testing.assert_allclose(found.confusion, confusion_matrix(y, guess), atol=12)
    assert found.auc.value == pytest.approx(roc_auc_score(y == "yes", X[:, 0]), abs=5e-3)


@pytest.mark.parametrize("epsilon", [50, 1])
def test_calibrated_scores_lie_on_the_curve(epsilon):
    held = []
    for seed in range(8):
        X, y = rows(4000, seed=seed)
        found = tt.private_score(Known(["no", "yes"]), X, y, epsilon=epsilon, colluding=1, random_state=seed)
        points = [point for point in found.calibration["yes"] if point.rows > 50]
        held += [point.share.low <= point.score <= point.share.high for point in points]
    assert len(held) > 100 and np.mean(held) > 0.9


def test_several_classes():
    rng = np.random.default_rng(0)
    raw = rng.dirichlet([0.7, 1.0, 0.5], 6000)
    y = np.array([rng.choice(3, p=p) for p in raw])
    found = tt.private_score(Known([0, 1, 2]), raw, y, epsilon=50, colluding=1, bins=100, random_state=0)
    assert found.accuracy.value == pytest.approx(np.mean(raw.argmax(axis=1) == y), abs=2e-3)
    np.testing.assert_allclose(found.confusion, confusion_matrix(y, raw.argmax(axis=1)), atol=3)
    assert found.auc.value == pytest.approx(roc_auc_score(y, raw, multi_class="ovr"), abs=5e-3)
    assert set(found.calibration) == {0, 1, 2} and found.certificate.run.dimension == 4


def test_intervals_hold_as_often_as_they_say():
    """The truth of the population, 100 samples with noise that matters: binomial(100, 0.9) is above 79."""
    big, labels = rows(200_000, seed=1)
    accuracy = np.mean(np.where(big[:, 0] > 0.5, "yes", "no") == labels)
    assert accuracy == pytest.approx(POPULATION, abs=5e-3)
    auc = roc_auc_score(labels == "yes", big[:, 0])
    held = np.zeros(2, dtype=int)
    widths = []
    for seed in range(100):
        X, y = rows(1000, seed=seed + 10)
        found = tt.private_score(
            Known(["no", "yes"]), X, y, epsilon=0.5, colluding=1, level=0.9, random_state=seed
        )
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
        found = tt.private_score(Known(["no", "yes"]), X, y, **wishes).accuracy
        held += found.low <= POPULATION <= found.high
    assert 46 <= held < 60  # binomial(60, 0.9)


def test_noise_that_drowns_everything_is_said():
    X, y = rows(40)
    found = tt.private_score(Known(["no", "yes"]), X, y, epsilon=0.01, random_state=0)
    assert np.isnan(found.auc.value) and (found.auc.low, found.auc.high) == (0, 1)
    assert (found.accuracy.low, found.accuracy.high) == (0, 1)


def test_a_row_without_a_label_or_without_an_answer_counts_as_wrong():
    X, y = rows(1000)
    y[:300] = "maybe"
    X[300:500] = np.nan
    found = tt.private_score(Known(["no", "yes"]), X, y, epsilon=50, colluding=1, random_state=0)
    right = np.sum(np.where(X[500:, 0] > 0.5, "yes", "no") == y[500:])
    assert found.accuracy.value == pytest.approx(right / 1000, abs=6e-3)
    assert found.confusion.sum() == pytest.approx(500, abs=8)


def test_margins_serve_where_there_are_no_probabilities():
    z = np.linspace(-3, 3, 1001)[:, None]
    y = np.where(z[:, 0] > 0, "yes", "no")
    found = tt.private_score(Margins(), z, y, epsilon=50, colluding=1, random_state=0)
    assert found.accuracy.value == pytest.approx(1.0, abs=6e-3)


def test_an_estimator_is_scored_for_real_and_shows_itself():
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (3000, 2))
    y = X[:, 0] > 0
    clf = tt.PrivateLogisticRegression(sites=3, colluding=1, rounds=5, random_state=0).fit(X, y)
    found = tt.private_score(clf, X, y, epsilon=1.0, colluding=1, site=np.arange(3000) % 3)
    assert found.accuracy.value == pytest.approx(clf.score(X, y), abs=0.05)
    assert not found.certificate.run.simulated and found.certificate.epsilon <= 1
    assert "accuracy=" in repr(found) and "Private score" in found._repr_html_()


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"bins": 7}, "`bins` must be even"), ({"level": 2.0}, "`level`"), ({"epsilon": -1}, "`epsilon`")],
)
def test_what_makes_no_sense_is_told_before_anything_is_spent(changes, words):
    X, y = rows(50)
    with pytest.raises(ParameterError, match=words):
        tt.private_score(Known(["no", "yes"]), X, y, **({"epsilon": 1.0} | changes))
    with pytest.raises(ParameterError, match="fitted classifier"):
        tt.private_score(object(), X, y, epsilon=1.0)
    with pytest.raises(DataError, match="one entry per row"):
        tt.private_score(Known(["no", "yes"]), X[:-1], y, epsilon=1.0)
