"""Class weights from public shares: no row has a weight above one, so no bound changes."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import DataError, ParameterError
from taciturn.estimators.labels import class_weights

SHARES = {"no": 0.9, "yes": 0.1}


@pytest.fixture(scope="module")
def rare():
    made = np.random.default_rng(0)
    X = made.uniform(-0.5, 0.5, (4000, 3))
    return X, np.where(4 * X[:, 0] + made.logistic(size=4000) > 2.4, "yes", "no")


def recall(model, X, y) -> float:
    return float(np.mean(model.predict(X)[y == "yes"] == "yes"))


@pytest.mark.parametrize("options", [{"effort": "quick"}, {"colluding": 1}])
def test_rare_class_is_predicted(rare, options):
    X, y = rare
    given = {
        "epsilon": 3.0,
        "sites": 3,
        "random_state": 0,
        "classes": ["no", "yes"],
        **options,
    }
    plain = tt.PrivateLogisticRegression(**given).fit(X, y)
    fair = tt.PrivateLogisticRegression(class_weight="balanced", class_shares=SHARES, **given).fit(X, y)
    assert recall(fair, X, y) > recall(plain, X, y) + 0.2
    assert fair.certificate_.epsilon == pytest.approx(plain.certificate_.epsilon, rel=1e-9), ()
    assert "rows are weighted by class, with public weights: no 0.111, yes 1" in fair.certificate_.run.marks
    assert "rows are weighted by class" in fair.certificate_.statement()
    fair.certificate_.verify()


def test_several_classes_and_persons(rare):
    X, _ = rare
    y = np.digitize(X[:, 0], [-0.1, 0.3])
    options = {"class_weight": {0: 1, 1: 2, 2: 4}, "random_state": 0, "max_rounds": 3}
    for more in ({"effort": "quick"}, {"colluding": 1}):
        model = tt.PrivateLogisticRegression(**options, **more).fit(X, y, person=np.arange(4000) // 2)
        assert model.predict(X).shape == (4000,)


@pytest.mark.parametrize("seed", range(5))
def test_no_row_moves_the_gradient_further_than_without_weights(seed):
    """|w L'| <= |L'| for w <= 1: replacing a record, its class included, moves (C/B) sum w L' x by 2 C/B."""
    made = np.random.default_rng(seed)
    X = made.normal(size=(20, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y, weight = np.sign(made.normal(size=20)), {1.0: 1.0, -1.0: 0.11}
    other, label = made.normal(size=3), -y[0]
    X2, y2 = X.copy(), y.copy()
    X2[0], y2[0] = other / np.linalg.norm(other), label
    f = made.normal(size=(50, 3)) * 10
    gradients = []
    for rows, labels in ((X, y), (X2, y2)):
        weights = [np.array([weight[one] for one in labels])]
        problem = tt.Problem([(rows, labels)], C=5.0, regularization=0.1, weights=weights)
        gradients.append(problem.site(0).gradient(f))
    moved = np.linalg.norm(gradients[0] - gradients[1], axis=1)
    assert moved.max() <= 2 * 5.0 / 20 * problem.loss.slope_bound + 1e-12


def test_a_weight_above_one_is_refused():
    with pytest.raises(DataError, match="must be between 0 and 1"):
        tt.Problem([([[1.0], [0.5]], [1, -1])], C=1.0, regularization=0.1, weights=[[1.0, 1.5]])


def test_weights_are_at_most_one_and_follow_the_shares():
    known = np.array(["no", "yes"])
    assert class_weights(known, None, None) is None
    assert class_weights(known, "balanced", SHARES) == pytest.approx([1 / 9, 1.0])
    assert class_weights(known, {"no": 2.0, "yes": 8.0}, None) == pytest.approx([0.25, 1.0])


@pytest.mark.parametrize(
    ("wanted", "shares", "words"),
    [
        ("balanced", None, "`class_shares` must give the public share"),
        ("balanced", {"no": 0.5, "yes": 0.1}, "must add up to 1; got 0.6"),
        ("balanced", {"no": 1.0}, "one number for each of the classes"),
        ("even", SHARES, "must be 'balanced', a mapping or None"),
        (None, SHARES, "needs class_weight='balanced'"),
        ({"no": -1.0, "yes": 1.0}, None, "`class_weight\\['no'\\]` must be"),
    ],
)
def test_senseless_class_weights_are_refused(wanted, shares, words):
    with pytest.raises(ParameterError, match=words):
        class_weights(np.array(["no", "yes"]), wanted, shares)
