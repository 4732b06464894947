"""Labels must have the type of the declared classes; a row with an undeclared label becomes zeros."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import DataError, ParameterError
from taciturn.estimators import PrivateHuberRegressor, PrivateLogisticRegression
from taciturn.estimators.labels import places, public_labels

TRUE = np.array([0, 1, 1, 0, 1])


@pytest.mark.parametrize("make", [int, float, bool, object, list, "Int64", "boolean", "category"])
def test_numeric_and_boolean_labels_match_numeric_classes(make):
    y = TRUE.tolist() if make is list else TRUE.astype(make) if isinstance(make, type) else series(TRUE, make)
    for classes in ([0, 1], [False, True], (1.0, 0.0)):
        assert places(public_labels(classes), y).tolist() == TRUE.tolist()


@pytest.mark.parametrize("make", [str, object, "string", "category"])
def test_text_labels_match_text_classes(make):
    words = np.array(["no", "yes"])[TRUE]
    y = words.astype(make) if isinstance(make, type) else series(words, make)
    assert places(public_labels(["yes", "no"]), y).tolist() == TRUE.tolist()


def series(values, dtype):
    pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    return pandas.Series(values, dtype=dtype)


@pytest.mark.parametrize(
    "y",
    [
        np.array([0.0, np.nan, 7.0, 1.0]),
        np.array([0, None, 7, 1], dtype=object),
        np.array([0, "0", b"1", 1], dtype=object),
    ],
)
def test_missing_or_undeclared_label_matches_no_class(y):
    assert places(public_labels([0, 1]), y).tolist() == [0, -1, -1, 1]


def test_pandas_missing_value_matches_no_class():
    assert places(public_labels([0, 1]), series([0, None, 7, 1], "Int64")).tolist() == [0, -1, -1, 1]
    assert places(public_labels(["a", "b"]), series(["a", None, "c", "b"], "string")).tolist() == [
        0,
        -1,
        -1,
        1,
    ]


@pytest.mark.parametrize(
    ("classes", "y", "words"),
    [
        ([0, 1], TRUE.astype(str), r"`y` has texts\. Write classes=\['0', '1'\], or convert y"),
        ([0, 1], TRUE.astype(str).astype(object), "`classes` has numbers, `y` has texts"),
        (["0", "1"], TRUE, r"`classes` has texts, `y` has numbers\. Drop the quotes"),
        (["False", "True"], TRUE == 1, "`classes` has texts, `y` has numbers"),
        ([0, 1], TRUE.astype("M8[s]"), "`classes` has numbers, `y` has other values"),
    ],
)
def test_another_type_is_one_clear_error_and_shows_no_label(rows, classes, y, words):
    with pytest.raises(DataError, match=words):
        places(public_labels(classes), y)
    with pytest.raises(DataError, match=words):
        PrivateLogisticRegression(classes=classes).fit(rows[0][:5], y)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["Yes", "No", "Yes"], "no label is 'no', but some labels differ from it only in case or spaces"),
        (["Yes", "no", "no"], "no label is 'yes', but some labels differ"),
        ([" yes", "no", "no"], "no label is 'yes', but some labels differ"),
        (["ja", "nein", "ja"], r"must contain the labels of `y`; no label is one of \['no', 'yes'\]"),
    ],
)
@pytest.mark.parametrize("kind", [str, object])
def test_labels_in_another_spelling_are_refused_before_anything_is_spent(rows, kind, y, words, tmp_path):
    y = np.array(y, dtype=kind)
    with tt.Budget(tmp_path / "a.sqlite", epsilon=1) as budget, pytest.raises(DataError, match=words):
        PrivateLogisticRegression(classes=["yes", "no"]).fit(rows[0][:3], y)
    assert budget.runs == ()


def test_absent_classes_and_undeclared_labels_are_allowed():
    assert places(public_labels(["yes", "no"]), ["no", "maybe", "no"]).tolist() == [0, -1, 0]
    assert places(public_labels(["yes", "no"]), ["no", "No", "yes"]).tolist() == [0, -1, 1]


@pytest.mark.parametrize("classes", [[0, "1"], [[0, 1]], [0, 0], ["a"], [None, 1]])
def test_an_invalid_list_of_classes_is_refused(classes):
    with pytest.raises(ParameterError, match="`classes` must list"):
        public_labels(classes)


@pytest.mark.filterwarnings("ignore::taciturn.core.errors.EmptyRowsWarning")
def test_a_row_without_a_label_counts_as_zeros_or_is_named(rows, quick):
    X, y = rows
    labels = y.astype(object)
    labels[::2] = None
    fitted = PrivateLogisticRegression(classes=["no", "yes"], random_state=0, **quick).fit(X, labels)
    assert fitted.certificate_.sites[0].samples == 600, "no row was dropped"
    with pytest.raises(DataError, match=r"some are missing\. If you declare `classes`"):
        PrivateLogisticRegression(random_state=0, **quick).fit(X, labels)


@pytest.mark.filterwarnings("ignore::taciturn.core.errors.EmptyRowsWarning")
@pytest.mark.parametrize("dtype", ["Float64", "float64", "object"])
def test_a_missing_target_in_a_frame_counts_as_zeros_too(rows, quick, dtype):
    X, _ = rows
    y = X[:, 0].copy()
    y[::3] = np.nan
    same = PrivateHuberRegressor(random_state=0, **quick)
    column = series([None if np.isnan(value) else value for value in y], dtype)
    assert np.array_equal(same.fit(X, column).coef_, same.fit(X, y).coef_)


@pytest.mark.parametrize("missing", [None, float("nan")])
@pytest.mark.parametrize("kind", [list, lambda values: np.array(values, dtype=object)])
def test_a_missing_target_in_a_list_counts_as_zeros_too(rows, quick, kind, missing):
    X, y = rows
    targets = [missing, *np.where(y == "ham", 1.0, 0.0)[1:].tolist()]
    frame = series(targets, "float64")
    listed = PrivateHuberRegressor(random_state=0, **quick).fit(X, kind(targets))
    assert np.array_equal(listed.coef_, PrivateHuberRegressor(random_state=0, **quick).fit(X, frame).coef_)


def test_numbers_of_type_object_are_labels_and_several_types_are_refused(rows, quick):
    X, y = rows
    plain = np.where(y == y[0], 1, 0)
    again = PrivateLogisticRegression(random_state=0, **quick).fit(X, plain.astype(object))
    assert np.array_equal(again.coef_, PrivateLogisticRegression(random_state=0, **quick).fit(X, plain).coef_)
    assert again.classes_.tolist() == [0, 1]
    mixed = np.array(["no" if one else 0 for one in plain], dtype=object)
    with pytest.raises(DataError, match="labels of one type; got numbers and texts"):
        PrivateLogisticRegression(random_state=0, **quick).fit(X, mixed)


def test_set_of_classes_is_refused_by_its_type():
    with pytest.raises(ParameterError, match="got set of"):
        public_labels({"a", "b"})
