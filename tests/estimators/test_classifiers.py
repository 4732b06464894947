"""The classifiers: accurate models within the budget, one charge for all classes, and no leaked rows."""

from __future__ import annotations

import pickle
import re
import struct
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import taciturn as tt
from taciturn.core.errors import (
    BudgetTooSmallWarning,
    ClippedRowsWarning,
    DataError,
    ParameterError,
    PrivacyLeakWarning,
    TaciturnError,
)
from taciturn.data.tables.unit_ball import UnitBallScaling
from taciturn.estimators import PrivateLinearSVC, PrivateLogisticRegression
from taciturn.estimators.classifiers import READ_OFF

pytestmark = pytest.mark.filterwarnings(
    "ignore::taciturn.core.errors.ClippedRowsWarning"
)  # long rows on purpose
BOTH = [PrivateLogisticRegression, PrivateLinearSVC]


@pytest.mark.parametrize("kind", BOTH)
def test_a_fit_learns_within_its_budget(kind, rows, quick):
    X, y = rows
    model = kind(epsilon=2.0, delta=1e-6, **quick).fit(X, y)
    assert model.score(X, y) > 0.85
    certificate = model.certificate_
    assert 1.9 < certificate.epsilon <= 2.0 and certificate.delta == 1e-6
    assert not certificate.run.simulated and not certificate.run.idealised
    certificate.verify()
    assert model.coef_.shape == (1, 4) and model.site_coef_.shape == (5, 1, 4)
    assert model.trace_.released.shape == (model.plan_.rounds, 5, 1, 5)


def test_a_seed_replays_the_fit_and_the_certificate_states_it(rows, quick):
    X, y = rows
    first, again = (PrivateLogisticRegression(random_state=1, **quick).fit(X, y) for _ in range(2))
    assert np.array_equal(first.coef_, again.coef_)
    assert first.certificate_.run.simulated and "SIMULATED" in first.certificate_.statement()
    secret = PrivateLogisticRegression(**quick).fit(X, y)
    assert not np.array_equal(first.coef_, secret.coef_)
    shared = np.random.RandomState(0)
    one, two = (PrivateLogisticRegression(random_state=shared, **quick).fit(X, y) for _ in range(2))
    assert not np.array_equal(one.coef_, two.coef_), "a generator moves on between fits"


@pytest.mark.parametrize("X", [[["Ada Example"], ["b"]], np.array([[1, "Ada Example"], [2, "b"]])])
def test_an_error_does_not_quote_the_data(X):
    with pytest.raises(DataError, match="must contain numbers") as caught:
        PrivateLogisticRegression(sites=2).fit(X, [0, 1])
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize("X", [[123.25, 2.0], 123.25])
def test_an_error_about_the_shape_of_the_rows_does_not_quote_them(X):
    """scikit-learn's own message contains the array."""
    with pytest.raises(DataError, match="`X` must have rows and columns") as caught:
        PrivateLogisticRegression(sites=2).fit(X, [0, 1])
    assert "123" not in str(caught.value) and caught.value.__context__ is None


def test_epsilon_covers_all_classes_together(rows, quick):
    X, _ = rows
    y = np.digitize(X[:, 0], [-0.2, 0.2])
    model = PrivateLogisticRegression(epsilon=3.0, classes=[0, 1, 2], **quick).fit(X, y)
    certificate = model.certificate_
    assert certificate.run.outputs == 3 and 2.9 < certificate.epsilon <= 3.0
    assert model.coef_.shape == (3, 4) and model.predict_proba(X[:5]).sum(axis=1) == pytest.approx(1)
    assert model.score(X, y) > 0.45


@pytest.mark.parametrize("seed", [None, 0])
def test_every_class_has_noise_of_its_own(seed, rows, quick):
    X, _ = rows
    y = np.digitize(X[:, 0], [-0.2, 0.2])
    with nullcontext() if seed == 0 else pytest.warns(BudgetTooSmallWarning):
        model = PrivateLogisticRegression(epsilon=0.01, random_state=seed, **quick).fit(X, y)
    first, second, _ = np.moveaxis(model.trace_.released[0], 1, 0)  # at this budget all noise
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.95


def test_sites_by_label_have_their_names_in_the_certificate(rows, quick):
    X, y = rows
    site = np.array(["north", "south", "west"])[np.arange(len(y)) % 3]
    model = PrivateLogisticRegression(graph="ring", **quick).fit(X, y, site=site)
    assert [facts.name for facts in model.certificate_.sites] == ["north", "south", "west"]
    assert model.trace_.settings["graph"]["name"] == "ring"


def test_without_privacy_the_sites_reach_the_pooled_optimum(rows):
    X, y = rows
    site = np.digitize(X[:, 2], [-0.2, 0.2])  # not alike
    model = PrivateLogisticRegression(epsilon=float("inf")).fit(X, y, site=site)
    assert model.certificate_.epsilon == np.inf and "No random noise" in model.certificate_.statement()
    Z = UnitBallScaling(1.0, intercept=True).rows(X)
    hands = tt.data.deal(Z, np.where(y == "yes", 1.0, -1.0), site)
    best = tt.Problem(hands, C=model.plan_.C, regularization=model.plan_.regularization).optimum()
    assert model.decision_function(X) == pytest.approx(Z @ best, abs=0.01 * np.abs(Z @ best).max())
    assert np.ptp(model.site_coef_, axis=0).max() < 0.1 * np.abs(model.coef_).max(), "the sites agree"
    free = LogisticRegression(C=np.inf, tol=1e-8).fit(X, y)
    assert model.score(X, y) > free.score(X, y) - 0.003


def test_rows_beyond_the_bound_are_clipped(rows, quick):
    X, y = rows
    far = X * 1e6
    clipped = far / np.linalg.norm(far, axis=1, keepdims=True)
    first = PrivateLogisticRegression(random_state=0, **quick).fit(far, y)
    second = PrivateLogisticRegression(random_state=0, **quick).fit(clipped, y)
    assert first.coef_ == pytest.approx(second.coef_, rel=1e-4)


def test_a_missing_bound_raises_and_one_from_the_data_warns_and_is_marked(rows, quick):
    X, y = rows
    with pytest.raises(ParameterError, match="`data_norm` must be a public bound"):
        PrivateLogisticRegression(data_norm=None).fit(X, y)
    with pytest.warns(PrivacyLeakWarning, match="taken from the data") as caught:
        model = PrivateLogisticRegression(data_norm="from data", **quick).fit(X, y)
    assert caught[0].filename == __file__, "the warning points at the user's line"
    assert "taken from the data" in model.certificate_.statement()
    assert "taken from the data" in model.certificate_.to_json()


def test_the_classes_are_public_or_the_certificate_says_where_they_come_from(rows, quick):
    X, y = rows
    assert READ_OFF in PrivateLogisticRegression(**quick).fit(X, y).certificate_.run.marks
    declared = PrivateLogisticRegression(classes=["yes", "no"], random_state=0, **quick)
    assert READ_OFF not in declared.fit(X, y).certificate_.run.marks
    strange, blank = y.copy().astype(object), X.copy()
    strange[:100], blank[:100] = "maybe", 0.0
    model = declared.fit(X, strange)
    assert list(model.classes_) == ["no", "yes"]
    assert sum(facts.samples for facts in model.certificate_.sites) == len(y), "no row is dropped"
    bare = declared.set_params(fit_intercept=False)
    zeros = bare.fit(blank, y).coef_.copy()
    assert bare.fit(X, strange).coef_ == pytest.approx(zeros, abs=1e-5), "it counts as a row of zeros"
    for wrong in (["yes"], ["yes", "yes"], [["yes", "no"]]):
        with pytest.raises(ParameterError, match="at least 2 different labels"):
            PrivateLogisticRegression(classes=wrong).fit(X, y)


def test_user_method_is_held_to_the_budget(rows):
    X, y = rows

    def own(std, output=1e-3, **options):
        noise = None if output is None else tt.GaussianNoise(output)
        method = tt.PenaltyPerturbation(0.01, 0.01, tt.GaussianNoise(std), output_noise=noise)
        return PrivateLogisticRegression(epsilon=1.0, method=method, rounds=2, **options).fit(X, y)

    assert 0.01 < own(5.0).certificate_.epsilon <= 1.0
    with pytest.raises(ParameterError, match="within epsilon = 1; 2 rounds cost"):
        own(0.05)
    with pytest.raises(ParameterError, match="`method` must add noise for epsilon = 1; got MADMM"):
        PrivateLogisticRegression(method=tt.MADMM(0.01, 0.01), rounds=2).fit(X, y)
    with pytest.raises(ParameterError, match="must have `output_noise`"):
        own(5.0, output=None)
    assert own(5.0, output=None, random_state=0).certificate_.run.idealised
    with pytest.raises(ParameterError, match="`rounds` must be given"):
        PrivateLogisticRegression(method=tt.ADMM(1.0)).fit(X, y)


def test_a_pure_budget_is_kept(rows):
    X, y = rows
    model = PrivateLogisticRegression(epsilon=8.0, delta=0, rounds=2, effort="quick").fit(X, y)
    assert model.certificate_.pure_epsilon <= 8.0 and model.certificate_.run.noise == "norm"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0}, "`epsilon` must be above 0"),
        ({"epsilon": "1"}, "`epsilon` must be a number"),
        ({"delta": 2}, "`delta` must be strictly between 0 and 1"),
        ({"C": "big"}, "`C` must be a number"),
        ({"noise": "loud"}, "`noise` must be one of"),
        ({"effort": "none"}, "`effort` must be one of"),
        ({"rounds": 1.5}, "`rounds` must be a whole number"),
        ({"random_state": "zero"}, "`random_state` must be a whole number"),
        ({"data_norm": "auto"}, "`data_norm` must be a number or 'from data'"),
        ({"data_norm": 1e200}, "`data_norm` must be between"),
        ({"sites": 1}, "`sites` must be at least 2"),
    ],
)
def test_a_wrong_parameter_is_one_line_that_names_it(rows, options, words):
    with pytest.raises(TaciturnError, match=re.escape(words)) as error:
        PrivateLogisticRegression(**options).fit(*rows)
    assert "\n" not in str(error.value)


ODD = st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e300, -1.7e308, 0.3])


@settings(max_examples=40, deadline=None)
@given(st.data())
@pytest.mark.slow
def test_odd_tables_give_a_result_or_one_clear_error(data):
    n, d = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 4))
    X = np.array(data.draw(st.lists(ODD, min_size=n * d, max_size=n * d))).reshape(n, d)
    if data.draw(st.booleans()):
        X[:, 0] = 0.5  # a constant column
    y = data.draw(st.lists(st.integers(0, data.draw(st.integers(0, 2))), min_size=n, max_size=n))
    site = data.draw(st.none() | st.lists(st.integers(0, 3), min_size=n, max_size=n))  # one row, one class
    kind = data.draw(st.sampled_from(BOTH))
    model = kind(sites=2, noise="gaussian", rounds=2, effort="quick", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ClippedRowsWarning)
        try:
            model.fit(X, y, site=site)
        except ValueError as error:
            assert str(error)
        else:
            assert model.predict(X).shape == (n,) and np.isfinite(model.decision_function(X)).all()
            assert model.certificate_.epsilon <= 1.0


def test_no_row_shows_in_errors_reprs_or_pickles(rows, quick):
    X, y = rows[0].copy(), rows[1]
    secret = 0.123456789
    X[7, 1] = secret
    model = PrivateLogisticRegression(**quick).fit(X, y)
    shown = [repr(model), repr(model.trace_), repr(model.plan_), repr(model.certificate_)]
    shown += [str(vars(model)), model.certificate_.to_json()]
    assert not any(str(secret)[2:] in text for text in shown)
    kept = pickle.dumps(model)
    assert struct.pack("<d", secret) not in kept and struct.pack(">d", secret) not in kept
    assert struct.pack("<d", secret * UnitBallScaling(1.0, intercept=True).share) not in kept, (
        "nor the row inside the ball"
    )
    back = pickle.loads(kept)
    assert np.array_equal(back.predict(X), model.predict(X))
    assert back.certificate_.epsilon == model.certificate_.epsilon
    X[7, 1] = np.nan
    with pytest.raises(ValueError) as error:
        PrivateLogisticRegression(**quick).fit(X, y)
    assert not re.search(r"\d\.\d{3}", str(error.value))


def test_user_method_is_charged_once_per_class(rows):
    X, y = rows
    third = np.where(np.arange(len(y)) % 3 == 0, "maybe", y)
    method = tt.PenaltyPerturbation(0.01, 0.01, tt.GaussianNoise(5.0), output_noise=tt.GaussianNoise(1e-3))
    cost = PrivateLogisticRegression(epsilon=1.0, method=method, rounds=2).fit(X, y).certificate_.epsilon
    model = PrivateLogisticRegression(epsilon=1.05 * cost, method=method, rounds=2)
    with pytest.raises(ParameterError, match="2 rounds cost"):
        model.fit(X, third)


def test_pure_budget_requires_a_pure_user_method(rows):
    X, y = rows
    method = tt.PenaltyPerturbation(0.01, 0.01, tt.GaussianNoise(5.0), output_noise=tt.GaussianNoise(1e-3))
    with pytest.raises(ParameterError, match="cost infinite at delta = 0"):
        PrivateLogisticRegression(epsilon=1.0, delta=0, method=method, rounds=2).fit(X, y)
